// Pulumi's Kubernetes provider, built from its published Go module.
//
// The module's own main package embeds two generated files that the module does not ship, so it cannot be built as it
// is. This one reads the files they are generated from, which lie beside the binary: schema.json and
// terraform-mapping.json of the module's cmd/pulumi-resource-kubernetes.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
)

// Set by the linker, from versions.toml.
var version string

func main() {
	provider.Serve("kubernetes", version, beside("schema.json"), beside("terraform-mapping.json"))
}

func beside(name string) []byte {
	executable, err := os.Executable()
	if err == nil {
		executable, err = filepath.EvalSymlinks(executable)
	}
	var content []byte
	if err == nil {
		content, err = os.ReadFile(filepath.Join(filepath.Dir(executable), name))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pulumi-resource-kubernetes:", err)
		os.Exit(1)
	}
	return content
}
