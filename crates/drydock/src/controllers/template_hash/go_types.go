// Prints the Go types that a pod template is made of, one per line, for template_hash.rs to read.
//
// Run within a module that requires k8s.io/api at the version the drydock follows:
//
//	go run go_types.go > go_types.txt
package main

import (
	"fmt"
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
)

var seen = map[string]reflect.Type{}

// ref names a type: its kind, its printed name and, after a bar, what it is made of.
func ref(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Ptr:
		if t.String() == "*time.Location" {
			return "pointer " + t.String() + "|string string"
		}
		return "pointer " + t.String() + "|" + ref(t.Elem())
	case reflect.Slice:
		return "slice " + t.String() + "|" + ref(t.Elem())
	case reflect.Map:
		return "map " + t.String() + "|" + ref(t.Elem())
	case reflect.Struct:
		visit(t)
		return "struct " + t.String()
	}
	return t.Kind().String() + " " + t.String()
}

func visit(t reflect.Type) {
	if old, ok := seen[t.String()]; ok {
		if old != t {
			panic("two types named " + t.String())
		}
		return
	}
	seen[t.String()] = t
	var fields []string
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") || (f.Anonymous && name == "") {
			name = "<"
		} else if name == "" {
			name = "-"
		}
		fields = append(fields, f.Name+"\t"+name+"\t"+ref(f.Type))
	}
	fmt.Println(t.String() + "\n\t" + strings.Join(fields, "\n\t"))
}

func main() { visit(reflect.TypeOf(v1.PodTemplateSpec{})) }
