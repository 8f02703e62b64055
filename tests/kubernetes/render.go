// Renders a chart as `helm template` does, of what Helm is made of: Go's text/template, sprig and sigs.k8s.io/yaml. On stdout is a JSON
// object: what each template became, by its path.
//
//	render CHART RELEASE NAMESPACE VALUES API...
//
// VALUES: a YAML file laid over the chart's values.yaml, or "". API: what the server is taken to know, such as policy/v1.
//
// What Helm does and this does not: subcharts, `lookup` (empty here, as with `helm template`), values.schema.json, hooks, and --set.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig" // 3.2: Debian has it without the version in its path
	"sigs.k8s.io/yaml"
)

const deepest = 1000 // `include` within `include`, as in Helm

type values = map[string]interface{}

type apis []string

// Has is what charts call.
func (a apis) Has(name string) bool {
	for _, one := range a {
		if one == name {
			return true
		}
	}
	return false
}

type files map[string][]byte

// Get is what charts call; "" if there is no such file.
func (f files) Get(name string) string { return string(f[name]) }

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func readYaml(path string) values {
	text, err := os.ReadFile(path)
	check(err)
	read := values{}
	if err := yaml.Unmarshal(text, &read); err != nil {
		check(fmt.Errorf("%s: %w", path, err))
	}
	return read
}

// Lays maps over each other; null takes a field away.
func overlay(under, over values) values {
	for name, value := range over {
		if value == nil {
			delete(under, name)
			continue
		}
		below, isMap := under[name].(values)
		if above, both := value.(values); isMap && both {
			under[name] = overlay(below, above)
		} else {
			under[name] = value
		}
	}
	return under
}

func toYaml(value interface{}) string {
	text, err := yaml.Marshal(value)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(text), "\n")
}

func fromYaml(text string) values {
	read := values{}
	if err := yaml.Unmarshal([]byte(text), &read); err != nil {
		read["Error"] = err.Error()
	}
	return read
}

func toJSON(value interface{}) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}

func required(why string, value interface{}) (interface{}, error) {
	if text, isText := value.(string); value == nil || isText && text == "" {
		return value, fmt.Errorf("%s", why)
	}
	return value, nil
}

func functions(all *template.Template) template.FuncMap {
	known := sprig.TxtFuncMap()
	delete(known, "env")
	delete(known, "expandenv")
	depth := 0
	known["include"] = func(name string, data interface{}) (string, error) {
		if depth++; depth > deepest {
			return "", fmt.Errorf("include %q: nested too deeply", name)
		}
		defer func() { depth-- }()
		var out strings.Builder
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	known["toYaml"], known["fromYaml"], known["toJson"], known["required"] = toYaml, fromYaml, toJSON, required
	known["lookup"] = func(string, string, string, string) values { return values{} }
	return known
}

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: render CHART RELEASE NAMESPACE VALUES API...")
		os.Exit(2)
	}
	chart, release, namespace, over := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	vals := readYaml(filepath.Join(chart, "values.yaml"))
	if over != "" {
		vals = overlay(vals, readYaml(over))
	}
	about := values{}
	for name, value := range readYaml(filepath.Join(chart, "Chart.yaml")) {
		about[strings.ToUpper(name[:1])+name[1:]] = value // the fields of Helm's Chart object
	}

	all := template.New("").Option("missingkey=zero")
	all.Funcs(functions(all))
	others := files{}
	var names []string
	check(filepath.Walk(chart, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(chart, path)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(name, "templates/") {
			others[name] = text
			return nil
		}
		names = append(names, name)
		_, err = all.New(name).Parse(string(text))
		return err
	}))
	sort.Strings(names)

	made := map[string]string{}
	for _, name := range names {
		if strings.HasPrefix(filepath.Base(name), "_") {
			continue
		}
		var out bytes.Buffer
		check(all.ExecuteTemplate(&out, name, values{
			"Values": vals, "Chart": about, "Files": others, "Capabilities": values{"APIVersions": apis(os.Args[5:])},
			"Release": values{"Name": release, "Namespace": namespace, "Service": "Helm", "IsInstall": true, "IsUpgrade": false,
				"Revision": 1},
			"Template": values{"Name": name, "BasePath": "templates"}}))
		made[name] = strings.ReplaceAll(out.String(), "<no value>", "") // as Helm does
	}
	check(json.NewEncoder(os.Stdout).Encode(made))
}
