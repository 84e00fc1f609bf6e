// OLM's own validators, as a program: those of operator-framework/api, and those by which opm takes a bundle.
//
//	verify bundles DIR...             what they say of each bundle, and a line with the numbers of errors and warnings
//	verify same CATALOG IMAGE DIR...  whether a catalog says of bundles what opm itself would
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"text/template"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
	"github.com/operator-framework/operator-registry/alpha/action"
	"github.com/operator-framework/operator-registry/alpha/action/migrations"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/pkg/lib/bundle"
	"github.com/sirupsen/logrus"
)

// All that work without pulling images.
var validators = interfaces.Validators{
	validation.ClusterServiceVersionValidator,
	validation.CustomResourceDefinitionValidator,
	validation.BundleValidator,
	validation.OperatorHubV2Validator,
	validation.StandardCategoriesValidator,
	validation.StandardCapabilitiesValidator,
	validation.ObjectValidator,
	validation.OperatorGroupValidator,
	validation.AlphaDeprecatedAPIsValidator,
	validation.GoodPracticesValidator,
}

// Any permission on events of events.k8s.io passes for one on the version v1beta1 of them: roles name no versions.
var falseAlarm = regexp.MustCompile(`removed in v1\.25\..* Migrate the API\(s\) for events: \(\["[^"]*"\]\)$`)

func main() {
	logrus.SetLevel(logrus.WarnLevel)
	if len(os.Args) > 2 && os.Args[1] == "bundles" {
		for _, dir := range os.Args[2:] {
			verify(dir)
		}
		return
	}
	if len(os.Args) > 4 && os.Args[1] == "same" {
		same(os.Args[2], os.Args[3], os.Args[4:])
		return
	}
	fmt.Fprintln(os.Stderr, "usage: verify bundles DIR... | verify same CATALOG IMAGE DIR...")
	os.Exit(2)
}

func verify(dir string) {
	errors, warnings := 0, 0
	fail := func(err error) {
		errors++
		fmt.Printf("  error: %v\n", err)
	}
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	registry := bundle.NewImageValidator(nil, logrus.NewEntry(logger), "bundle-objects")
	if err := registry.ValidateBundleFormat(dir); err != nil {
		fail(err)
	}
	if err := registry.ValidateBundleContent(filepath.Join(dir, "manifests")); err != nil {
		fail(err)
	}
	loaded, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		fail(err)
	} else {
		for _, result := range validators.Validate(loaded.ObjectsToValidate()...) {
			for _, one := range result.Errors {
				fail(one)
			}
			for _, one := range result.Warnings {
				if falseAlarm.MatchString(one.Error()) {
					continue
				}
				warnings++
				fmt.Printf("  warning: %v\n", one)
			}
		}
	}
	fmt.Printf("%s errors=%d warnings=%d\n", dir, errors, warnings)
}

func same(catalog, image string, dirs []string) {
	ours, err := declcfg.LoadFS(context.Background(), os.DirFS(catalog))
	exit(err)
	known := map[string]declcfg.Bundle{}
	for _, one := range ours.Bundles {
		known[one.Name] = one
	}
	levels, err := migrations.NewMigrations("bundle-object-to-csv-metadata")
	exit(err)
	for _, dir := range dirs {
		render := action.Render{
			Refs: []string{dir}, Migrations: levels,
			ImageRefTemplate: template.Must(template.New("image").Parse(image)),
		}
		theirs, err := render.Run(context.Background())
		exit(err)
		for _, one := range theirs.Bundles {
			if want, have := tree(one), tree(known[one.Name]); !reflect.DeepEqual(want, have) {
				exit(fmt.Errorf("%s differs\nopm: %v\nours: %v", one.Name, text(want), text(have)))
			}
			fmt.Printf("%s is in the catalog as opm renders it\n", one.Name)
		}
	}
}

// A bundle as a tree, with its lists in a fixed order.
func tree(one declcfg.Bundle) map[string]any {
	var out map[string]any
	exit(json.Unmarshal([]byte(text(one)), &out))
	for _, field := range []string{"properties", "relatedImages"} {
		list, _ := out[field].([]any)
		sort.Slice(list, func(i, j int) bool { return text(list[i]) < text(list[j]) })
	}
	return out
}

func text(value any) string {
	bytes, err := json.Marshal(value)
	exit(err)
	return string(bytes)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
