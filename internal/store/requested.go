package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Version is one version of a parameter.
type Version struct {
	Text string
	// Secure marks a SecureString. Sawhorse must not decrypt its text.
	Secure   bool
	Number   int64
	Modified time.Time
	// By is the ARN of who wrote it. Only ReadHistory tells it.
	By string
}

// after reports whether a version was written after another one. Those of a parameter that was deleted begin again.
func (v Version) after(number int64, modified time.Time) bool {
	return v.Modified.After(modified) || v.Modified.Equal(modified) && v.Number > number
}

// VersionReader is the part of SSM's API that reading one parameter needs.
type VersionReader interface {
	GetParameter(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
}

// RackReader is the part of SSM's API that finding out whether a rack exists needs.
type RackReader interface {
	ParameterReader
	VersionReader
}

// ChangeReader is the part of SSM's API that reading a rack's parameters and its parameter change needs.
type ChangeReader interface {
	RackReader
	GetParameterHistory(context.Context, *ssm.GetParameterHistoryInput, ...func(*ssm.Options)) (*ssm.GetParameterHistoryOutput, error)
}

// ReadVersion returns the present version of a parameter, or nil if there is no such parameter.
func ReadVersion(ctx context.Context, reader VersionReader, name string) (*Version, error) {
	out, err := reader.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
	if errors.As(err, new(*types.ParameterNotFound)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("parameter %s: read: %w", name, err)
	}
	p := out.Parameter
	return &Version{
		Text: aws.ToString(p.Value), Secure: p.Type == types.ParameterTypeSecureString,
		Number: p.Version, Modified: aws.ToTime(p.LastModifiedDate),
	}, nil
}

// ReadHistory returns the versions of a parameter that Parameter Store keeps, at most the last hundred, in their order. There are none
// of a parameter that was deleted.
func ReadHistory(ctx context.Context, reader ChangeReader, name string) ([]Version, error) {
	var all []Version
	pages := ssm.NewGetParameterHistoryPaginator(reader, &ssm.GetParameterHistoryInput{Name: &name, MaxResults: new(int32(50))})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if errors.As(err, new(*types.ParameterNotFound)) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("parameter %s: read history: %w", name, err)
		}
		for _, p := range page.Parameters {
			all = append(all, Version{
				Text: aws.ToString(p.Value), Secure: p.Type == types.ParameterTypeSecureString,
				Number: p.Version, Modified: aws.ToTime(p.LastModifiedDate), By: aws.ToString(p.LastModifiedUser),
			})
		}
	}
	slices.SortFunc(all, func(a, b Version) int { return cmp.Compare(a.Number, b.Number) })
	return all, nil
}

// behind is how long the history of a parameter may lack what has been written.
const behind = 10 * time.Second

// ReadChange returns the versions of the parameter change that have not been read yet, in their order. present is what ReadVersion
// returned of it. more means that others may be missing between these and the present one, because the history is behind. Numbers
// alone do not tell that nothing was skipped: a parameter that was deleted begins at 1 again.
func (c *Changes) ReadChange(ctx context.Context, reader ChangeReader, name string, present *Version, now time.Time) (
	versions []Version, more bool, err error,
) {
	if present == nil || !c.isNew(*present) {
		return nil, false, nil
	}
	if present.Number == 1 {
		return []Version{*present}, false, nil
	}
	if versions, err = ReadHistory(ctx, reader, name); err != nil {
		return nil, false, err
	}
	last := int64(0)
	if len(versions) > 0 {
		last = versions[len(versions)-1].Number
	}
	switch {
	case last >= present.Number:
		return versions, false, nil
	case last == present.Number-1, now.Sub(present.Modified) > behind:
		return append(versions, *present), false, nil
	}
	return versions, true, nil
}

// Requested is what a change asks for.
type Requested struct {
	// Set maps names to new values. Unset has the names of parameters that get their default.
	Set   map[string]string `json:"set,omitempty"`
	Unset []string          `json:"unset,omitempty"`
	// Expect is the number of the snapshot that the change was made from, or 0.
	Expect int64 `json:"expect,omitempty"`
	// Force has the guards to override.
	Force events.Force `json:"force,omitempty"`
	// Note is for people.
	Note string `json:"note,omitempty"`
	// Object is the s3:// value that the parameter has in place of the change, until it is read.
	Object string `json:"object,omitempty"`
	// Malformed are problems with the change itself, independent of the rack. If there are any, nothing else is set.
	Malformed []params.Problem `json:"malformed,omitempty"`
}

// MaxValue is the longest value of a parameter in bytes: the limit of SSM's advanced tier.
const MaxValue = 8192

// maxNote is the longest note in bytes. It is repeated in the status.
const maxNote = 256

// ParameterChange is the name by which problems of a change are reported.
const ParameterChange = "change"

// request parses one version of the parameter change.
func request(v Version) Requested {
	if v.Secure {
		return Requested{Malformed: []params.Problem{params.NewProblem(ParameterChange, "",
			"change is a SecureString, which Sawhorse does not decrypt; allowed are String and StringList; "+
				"delete the parameter and write it again")}}
	}
	if uri := strings.TrimSpace(v.Text); strings.HasPrefix(uri, "s3://") {
		return Requested{Object: uri}
	}
	return ParseChange(v.Text)
}

// ParseChange parses the JSON of a change, written as it is or in base64. In set, the empty text and the word unset mean the
// same as unset, because SSM cannot store an empty value.
func ParseChange(written string) (r Requested) {
	document, flaw := params.JSONObject(written)
	if flaw != "" {
		return Requested{Malformed: []params.Problem{params.NewProblem(ParameterChange, "",
			`change %s; allowed is a JSON object with set, unset, expect, force and note; `+
				`write, for example, {"set": {"karpenter_cpu_limit": "200"}}`, flaw)}}
	}
	p := parsing{Requested: Requested{Set: map[string]string{}}}
	for _, field := range slices.Sorted(maps.Keys(document)) {
		switch value := document[field]; field {
		case "set":
			p.set(value)
		case "unset":
			p.unset(value)
		case "expect":
			p.expect(value)
		case "force":
			p.force(value)
		case "note":
			p.note(value)
		default:
			p.problem(field, "%s is no field of a change; allowed are set, unset, expect, force and note; %s", params.Quoted(field),
				params.DidYouMean(field, []string{"set", "unset", "expect", "force", "note"}, "leave it out"))
		}
	}
	if len(p.Malformed) > 0 {
		return Requested{Malformed: p.Malformed}
	}
	slices.Sort(p.Unset)
	return p.Requested
}

type parsing struct{ Requested }

func (p *parsing) problem(path, format string, args ...any) {
	p.Malformed = append(p.Malformed, params.NewProblem(ParameterChange, path, format, args...))
}

func (p *parsing) set(value any) {
	texts, is := value.(map[string]any)
	if !is {
		p.problem("set", `set is no object; allowed is an object of texts; write, for example, "set": {"karpenter_cpu_limit": "200"}`)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		at := params.Join("set", name)
		switch text, is := texts[name].(string); {
		case !is:
			p.problem(at, "%s is no text; allowed is the text that the parameter is to have; write the value in quotes", at)
		case len(text) > MaxValue:
			p.problem(at, "%s has %d bytes; allowed are at most %d, as many as Parameter Store holds; put the JSON into S3 and write "+
				"s3://bucket/key.json", at, len(text), MaxValue)
		case text == "" || text == params.Unset:
			p.add(at, name)
		default:
			p.Set[name] = text
		}
	}
}

func (p *parsing) unset(value any) {
	names, is := value.([]any)
	if !is {
		p.problem("unset", `unset is no list; allowed is a list of names; write, for example, "unset": ["karpenter_cpu_limit"]`)
		return
	}
	for i, entry := range names {
		at := fmt.Sprintf("unset[%d]", i)
		name, is := entry.(string)
		if !is {
			p.problem(at, "%s is no text; allowed is the name of a parameter; write it in quotes", at)
			continue
		}
		p.add(at, name)
	}
}

// add adds a name to those that are unset. Set comes before unset, as the fields are read in the order of their names.
func (p *parsing) add(at, name string) {
	if _, too := p.Set[name]; too || slices.Contains(p.Unset, name) {
		p.problem(at, "%s names %s a second time; allowed is each parameter once in set and unset; leave it out of one", at, params.Quoted(name))
		return
	}
	p.Unset = append(p.Unset, name)
}

func (p *parsing) expect(value any) {
	number, is := value.(int64)
	if !is || number < 1 {
		p.problem("expect", "expect is no number of a snapshot; allowed is one that `sawhorse history` lists, without quotes; "+
			"leave it out if the change was made from none")
	}
	p.Expect = number
}

func (p *parsing) force(value any) {
	words, is := value.([]any)
	if !is {
		p.problem("force", `force is no list; allowed is a list of words; write, for example, "force": ["%s"]`, events.ForceRoom)
		return
	}
	if len(words) > events.MostForce {
		p.problem("force", "force has %d words; allowed are at most %d; leave some out", len(words), events.MostForce)
		return
	}
	for i, entry := range words {
		word, is := entry.(string)
		if !is || !events.IsForce(word) {
			p.problem(fmt.Sprintf("force[%d]", i), "force has the word %s; allowed are %s; write one of these",
				params.Quoted(fmt.Sprint(entry)), strings.Join(events.ForceWords, ", "))
			continue
		}
		p.Force = append(p.Force, word)
	}
}

func (p *parsing) note(value any) {
	text, is := value.(string)
	switch {
	case !is:
		p.problem("note", "note is no text; allowed is a text of at most %d bytes; write it in quotes", maxNote)
	case len(text) > maxNote:
		p.problem("note", "note has %d bytes; allowed are at most %d; write a shorter one", len(text), maxNote)
	}
	p.Note = text
}
