package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// recipeTable is generated from docs/recipes.md with -update. Tests of other packages read it.
const recipeTable = "../../internal/validation/testdata/recipes.json"

// recipe has the parameters that one block of a recipe writes, in the form of package validation's tables.
type recipe struct {
	What     string            `json:"what"`
	Params   map[string]string `json:"params"`
	Warnings []string          `json:"warnings,omitempty"`
}

// The commands that a recipe may contain. A value is single-quoted, a file, or the base64 of a file. Files are written
// before they are used.
var (
	putParameter = regexp.MustCompile(`^aws ssm put-parameter --overwrite --type String (?:--tier Advanced )?` +
		`--name /sawhorse/racks/prod/params/([a-z_]+) ` +
		`--value (?:'([^']*)'|file://([a-z]+\.json)|"\$\(base64 < ([a-z]+\.json)\)")$`)
	writeFile    = regexp.MustCompile(`^cat > ([a-z]+\.json) <<'END'$`)
	copyToS3     = regexp.MustCompile(`^aws s3 cp ([a-z]+\.json) (s3://[a-z-]+/[a-z/]+\.json)$`)
	deployPrefix = regexp.MustCompile(`^\.cache/npm/node_modules/\.bin/cdk deploy -c 'objectPrefixes=(s3://[a-z-]+/[a-z/]+\{rack\}/)'$`)
	listAMIs     = regexp.MustCompile(`^aws ssm get-parameters-by-path --recursive --path ` +
		`/aws/service/eks/optimized-ami/[0-9.]+/amazon-linux-2023/(x86_64|arm64)/standard --query 'Parameters\[\]\.Name' --output text$`)
	tagAMIs      = regexp.MustCompile(`^aws ec2 create-tags --resources( ami-[0-9a-f]{17})+ --tags Key=` + ownership.TagNodes + `,Value=true$`)
	activateTags = regexp.MustCompile(`^aws ce update-cost-allocation-tags-status ` +
		`--cost-allocation-tags-status( TagKey=[A-Za-z]+,Status=Active)+$`)
	warns = regexp.MustCompile("^`sawhorse check` warns under `([^`]+)`: \"([^\"]+)\"\\.$")
)

// kitchen has the files and objects that the blocks of a recipe share.
type kitchen struct {
	*testing.T
	files   map[string]string // by name
	objects map[string]string // by URI
	prefix  string
}

// cook parses one block. It returns the parameters that the block writes, and the same with the content of S3 objects
// in place of their URIs.
func (k *kitchen) cook(text string) (written, read map[string]string) {
	written, read = map[string]string{}, map[string]string{}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		if m := writeFile.FindStringSubmatch(lines[i]); m != nil {
			var content []string
			for i++; i < len(lines) && lines[i] != "END"; i++ {
				content = append(content, lines[i])
			}
			if i == len(lines) {
				k.Fatalf("%s has no end", m[1])
			}
			k.files[m[1]] = strings.Join(content, "\n") + "\n"
		} else if m := copyToS3.FindStringSubmatch(lines[i]); m != nil {
			if k.prefix == "" || !strings.HasPrefix(m[2], k.prefix) {
				k.Errorf("%s is not below %q, which the stack may read", m[2], k.prefix)
			}
			k.objects[m[2]] = k.file(m[1])
		} else if m := deployPrefix.FindStringSubmatch(lines[i]); m != nil {
			k.prefix = strings.ReplaceAll(m[1], ownership.RackInPrefix, "prod") // the rack of all recipes
		} else if m := putParameter.FindStringSubmatch(lines[i]); m != nil {
			value := k.value(m[2:])
			if _, twice := written[m[1]]; twice {
				k.Errorf("%s is written twice", m[1])
			}
			if written[m[1]], read[m[1]] = value, value; strings.HasPrefix(value, "s3://") {
				if read[m[1]] = k.objects[value]; read[m[1]] == "" {
					k.Errorf("nothing is copied to %s", value)
				}
			}
			k.fits(lines[i], value)
		} else if !listAMIs.MatchString(lines[i]) && !tagAMIs.MatchString(lines[i]) && !activateTags.MatchString(lines[i]) {
			k.Errorf("the test does not know this form of command: %s", lines[i])
		}
	}
	return written, read
}

// value returns the value of a put-parameter command: quoted text, the content of a file, or the base64 of a file.
func (k *kitchen) value(forms []string) string {
	switch {
	case forms[1] != "":
		return k.file(forms[1])
	case forms[2] != "":
		return base64.StdEncoding.EncodeToString([]byte(k.file(forms[2])))
	default:
		return forms[0]
	}
}

func (k *kitchen) file(name string) string {
	text, written := k.files[name]
	if !written {
		k.Errorf("nothing writes %s", name)
	}
	return text
}

// fits checks that Parameter Store accepts a value: 4 KB, or 8 KB in the advanced tier.
func (k *kitchen) fits(command, value string) {
	if most := 4 << 10; len(value) > most && !(strings.Contains(command, "--tier Advanced") && len(value) <= 2*most) {
		k.Errorf("a value of %d bytes: %.80s", len(value), command)
	}
}

func TestRecipes(t *testing.T) {
	t.Parallel()
	var table []recipe
	for _, s := range document(t, "../../docs/recipes.md")[1:] {
		t.Run(s.title, func(t *testing.T) {
			k := &kitchen{T: t, files: map[string]string{}, objects: map[string]string{}}
			var quoted, expected int
			for n, b := range s.blocks {
				if b.language != "sh" {
					t.Fatalf("a block of language %q", b.language)
				}
				written, read := k.cook(b.text)
				if len(written) == 0 {
					t.Errorf("block %d writes nothing", n+1)
				}
				r := recipe{What: fmt.Sprintf("%s, %d", s.title, n+1), Params: written}
				if m := warns.FindStringSubmatch(b.behind); m != nil {
					r.Warnings = []string{m[1] + ": " + m[2]}
					expected++
				}
				r.validate(t)
				table = append(table, r)
				if fmt.Sprint(read) != fmt.Sprint(written) {
					r = recipe{What: r.What + ", as a pass reads it", Params: read}
					r.validate(t)
					table = append(table, r)
				}
			}
			for _, line := range s.prose {
				if strings.Contains(line, "` warns") {
					quoted++
				}
			}
			if quoted != expected {
				t.Errorf("%d sentences on warnings, of which %d stand behind a block and in the form "+
					"\"`sawhorse check` warns under `PARAMETER PATH`: \\\"…\\\".\"", quoted, expected)
			}
			if len(s.blocks) == 0 {
				t.Error("no command")
			}
		})
	}
	sameTable(t, table)
}

// validate checks that a recipe is accepted, on a rack with Karpenter and system nodes that determine the architecture,
// with exactly the warnings that it quotes; and that it has an effect.
func (r recipe) validate(t *testing.T) {
	t.Helper()
	on := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true"}
	all := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true"}
	for name, value := range r.Params {
		all[name] = value
	}
	groups := []map[string]any{{"nodegroupName": "system", "capacityType": "ON_DEMAND", "instanceTypes": []string{"m6i.large"}}}
	text, err := json.Marshal(map[string]any{"rack": "prod", "params": all, "previous": on, "observed": map[string]any{"nodegroups": groups}})
	if err != nil {
		t.Fatal(err)
	}
	in, err := readInput(text) // other tests show that the command judges what it reads so: a process for each recipe takes half a minute
	if err != nil {
		t.Fatal(err)
	}
	v := in.result()
	if len(v.Problems) > 0 {
		t.Errorf("%s: refused:\n%s", r.What, listed(v.Problems))
		return
	}
	says(t, r.What, v.Warnings, r.Warnings)
	outcome, _ := in.outlook()
	found := strings.Contains(fmt.Sprint(r.Params), "s3://") || strings.Contains(fmt.Sprint(r.Params), "@latest-") // by a pass alone
	if len(outcome.Steps) == 0 && !found {
		t.Errorf("%s: changes nothing", r.What)
	}
	if _, accepted := render(in); !accepted {
		t.Errorf("%s: cannot be rendered", r.What)
	}
}

// sameTable checks that the table that other tests read matches the document.
func sameTable(t *testing.T, table []recipe) {
	t.Helper()
	text, err := encode(table, "  ")
	if err != nil {
		t.Fatal(err)
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(recipeTable, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if was, err := os.ReadFile(recipeTable); err != nil || string(was) != string(text) {
		t.Errorf("%s is not what docs/recipes.md says; run go test ./cmd/sawhorse -run TestRecipes -update", recipeTable)
	}
}
