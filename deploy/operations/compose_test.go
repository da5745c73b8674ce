package operations

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// Compose's own loader takes the file, and what it names is there. What the
// services do with it is tested in cmd/weir.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	const file = "../compose/compose.yaml"
	load := func(env ...string) (*types.Project, error) {
		options, err := cli.NewProjectOptions([]string{file}, cli.WithEnv(env), cli.WithResolvedPaths(true))
		if err != nil {
			t.Fatal(err)
		}
		return options.LoadProject(t.Context())
	}
	if _, err := load(); err == nil || !strings.Contains(err.Error(), "run ./setup.sh first") {
		t.Errorf("without setup.sh: %v", err)
	}
	project, err := load("WEIR_USER=1000:1000")
	if err != nil {
		t.Fatal(err)
	}
	setup := string(read(t, "../compose/setup.sh"))
	for name, secret := range project.Secrets {
		if filepath.Base(filepath.Dir(secret.File)) != "secrets" || !strings.Contains(setup, "keep "+filepath.Base(secret.File)+" ") {
			t.Errorf("the secret %s is in %s, which setup.sh does not make", name, secret.File)
		}
	}
	replicas := 0
	for name, s := range project.Services {
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
				t.Errorf("%s mounts %s, read-only %v: %v", name, v.Source, v.ReadOnly, err)
			}
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s is open to %q", name, p.HostIP)
			}
		}
		for key, value := range s.Environment {
			if secret, ok := strings.CutPrefix(*value, "/run/secrets/"); ok {
				granted := false
				for _, g := range s.Secrets {
					granted = granted || g.Source == secret
				}
				if !granted {
					t.Errorf("%s: %s names %s, which the service does not get", name, key, *value)
				}
			}
		}
		if s.Build != nil {
			replicas++
			if _, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if replicas != 2 {
		t.Errorf("%d replicas of weir", replicas)
	}
}
