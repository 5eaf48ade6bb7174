package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// establishLimit is how long a new kind may take to be served. It takes well
// under a second; the limit is for machines that do other things as well.
const establishLimit = 2 * time.Minute

// InstallCRDs creates or updates every CustomResourceDefinition in the .yaml and
// .yml files of a folder, and returns when the API server serves all versions of
// them. Other documents in the files are left out. A folder without any
// definition is an error.
func InstallCRDs(ctx context.Context, config *rest.Config, dir string) error {
	definitions, err := readCRDs(dir)
	if err != nil {
		return err
	}
	if len(definitions) == 0 {
		return fmt.Errorf("no CustomResourceDefinition in %s", dir)
	}
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for CustomResourceDefinitions: %w", err)
	}
	for _, definition := range definitions {
		if err := applyCRD(ctx, client, definition); err != nil {
			return err
		}
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a discovery client: %w", err)
	}
	for _, definition := range definitions {
		if err := waitServed(ctx, client, served, definition); err != nil {
			return err
		}
	}
	return nil
}

func readCRDs(dir string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing the CustomResourceDefinitions: %w", err)
	}
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, entry := range entries {
		if extension := filepath.Ext(entry.Name()); extension != ".yaml" && extension != ".yml" {
			continue
		}
		found, err := readFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		definitions = append(definitions, found...)
	}
	return definitions, nil
}

func readFile(path string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinitions: %w", err)
	}
	defer file.Close()
	var definitions []*apiextensionsv1.CustomResourceDefinition
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		err := decoder.Decode(definition)
		if errors.Is(err, io.EOF) {
			return definitions, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if definition.Kind == "CustomResourceDefinition" {
			definitions = append(definitions, definition)
		}
	}
}

func applyCRD(ctx context.Context, client apiextensions.Interface, wanted *apiextensionsv1.CustomResourceDefinition) error {
	all := client.ApiextensionsV1().CustomResourceDefinitions()
	_, err := all.Create(ctx, wanted, metav1.CreateOptions{})
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating CustomResourceDefinition %s: %w", wanted.Name, err)
	}
	existing, err := all.Get(ctx, wanted.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading CustomResourceDefinition %s: %w", wanted.Name, err)
	}
	updated := wanted.DeepCopy()
	updated.ResourceVersion = existing.ResourceVersion
	if _, err := all.Update(ctx, updated, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("updating CustomResourceDefinition %s: %w", wanted.Name, err)
	}
	return nil
}

// waitServed waits until the definition is established and, as that condition
// comes a moment before the handlers do, until discovery lists its resource.
func waitServed(ctx context.Context, client apiextensions.Interface, served discovery.DiscoveryInterface, wanted *apiextensionsv1.CustomResourceDefinition) error {
	missing := "it is not established"
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, establishLimit, true, func(ctx context.Context) (bool, error) {
		current, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, wanted.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		established := slices.ContainsFunc(current.Status.Conditions, func(condition apiextensionsv1.CustomResourceDefinitionCondition) bool {
			if condition.Status != apiextensionsv1.ConditionTrue && condition.Message != "" {
				missing = strings.TrimSpace(condition.Message)
			}
			return condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
		})
		if !established {
			return false, nil
		}
		for _, version := range wanted.Spec.Versions {
			group := wanted.Spec.Group + "/" + version.Name
			if version.Served && !lists(served, group, wanted.Spec.Names.Plural) {
				missing = "discovery does not list it in " + group
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until CustomResourceDefinition %s is served (%s): %w", wanted.Name, missing, err)
	}
	return nil
}

func lists(served discovery.DiscoveryInterface, group, plural string) bool {
	// An error means that it is not there yet; the caller asks again.
	resources, err := served.ServerResourcesForGroupVersion(group)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(resources.APIResources, func(resource metav1.APIResource) bool {
		return resource.Name == plural
	})
}
