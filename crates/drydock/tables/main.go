// Prints, for every built-in API type, what its Go struct says about its JSON form and no schema tells:
// field order, pointers, omitempty, omitzero, embedded structs and the type's name in error messages.
// tables.py merges it with the server's OpenAPI document into ../data.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type field struct {
	Name string `json:"n"`
	Type string `json:"t"`
	Omit int    `json:"o"` // 0: always written, 1: omitempty, 2: omitzero
	// The embedded structs that the field is in, which error messages name.
	Embedded string `json:"e,omitempty"`
	// The name of a map's type, where it is not that of its parts.
	Map string `json:"g,omitempty"`
}

type structure struct {
	Go     string  `json:"go"`
	Fields []field `json:"f"`
}

var out = map[string]structure{}

// Types whose JSON form is not their struct's.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                                             "time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                                        "microtime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":                                         "duration",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                                         "any",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                                         "quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                                       "intstr",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                                          "any",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                         "any",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":       "any",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":        "any",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "any",
}

func definition(t reflect.Type) string {
	host, rest, _ := strings.Cut(t.PkgPath(), "/")
	labels := strings.Split(host, ".")
	for i, j := 0, len(labels)-1; i < j; i, j = i+1, j-1 {
		labels[i], labels[j] = labels[j], labels[i]
	}
	return strings.Join(labels, ".") + "." + strings.ReplaceAll(rest, "/", ".") + "." + t.Name()
}

func expression(t reflect.Type) string {
	if s, ok := special[t.PkgPath()+"."+t.Name()]; ok {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + expression(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + expression(t.Elem())
	case reflect.Map:
		return "map:" + expression(t.Elem())
	case reflect.Struct:
		visit(t)
		return "@" + definition(t)
	case reflect.Interface:
		return "any"
	}
	if t.PkgPath() != "" {
		return t.Kind().String() + "#" + t.String()
	}
	return t.Kind().String()
}

func visit(t reflect.Type) {
	name := definition(t)
	if _, ok := out[name]; ok {
		return
	}
	out[name] = structure{}
	s := structure{Go: t.String()}
	collect(t, "", &s)
	out[name] = s
}

func collect(t reflect.Type, embedded string, s *structure) {
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if f.PkgPath != "" || name == "-" {
			continue
		}
		if f.Anonymous && name == "" {
			e := f.Type
			if e.Kind() == reflect.Pointer {
				e = e.Elem()
			}
			collect(e, strings.TrimPrefix(embedded+"."+f.Name, "."), s)
			continue
		}
		if name == "" {
			continue
		}
		omit := 0
		if strings.Contains(options, "omitzero") {
			omit = 2
		} else if strings.Contains(options, "omitempty") {
			omit = 1
		}
		s.Fields = append(s.Fields, field{name, expression(f.Type), omit, embedded, mapName(f.Type)})
	}
}

// mapName is the name of a map's type, unless it is plainly a map from strings.
func mapName(t reflect.Type) string {
	if t.Kind() != reflect.Map {
		return ""
	}
	named := t.Elem().Kind() == reflect.Slice && t.Elem().Name() != ""
	if t.Name() == "" && t.Key().Name() == "string" && !named {
		return ""
	}
	return t.String()
}

func main() {
	if err := apiextensions.AddToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
	if err := apiregistration.AddToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
	for _, t := range scheme.Scheme.AllKnownTypes() {
		if t.Kind() == reflect.Struct {
			visit(t)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		panic(err)
	}
}
