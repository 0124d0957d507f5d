package params

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxJSON is the largest size in bytes of a parameter's JSON after decoding.
const MaxJSON = 64 << 10

// maxDepth limits how deep JSON may be nested. Karpenter's objects need about a dozen levels.
const maxDepth = 40

var objectURI = regexp.MustCompile(`^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[^\s\x00-\x1f\x7f]+$`)

// localPath matches a local file path, which users give by mistake. Neither JSON nor base64 of JSON matches it.
var localPath = regexp.MustCompile(`^(file://|/|\.\.?/|~/)\S{0,200}$|^[^\s{}\[\]":]{1,200}\.json$`)

// IsObjectURI reports whether a text has the form of an s3:// value.
func IsObjectURI(text string) bool { return objectURI.MatchString(text) }

// ObjectURIs returns the s3:// values among a rack's texts. A pass reads these objects before it calls Parse.
func ObjectURIs(texts map[string]string) []string {
	var all []string
	for _, p := range Table {
		if value := strings.TrimSpace(texts[p.Name]); p.Type == "json" && IsObjectURI(value) {
			all = append(all, value)
		}
	}
	return all
}

// document returns the JSON of a parameter that is written as raw JSON, base64 or s3://. given is false if the
// parameter is not set, if its value was refused, or if the S3 object was not read.
func (r *Result) document(name string, objects map[string]Object) (value any, given bool) {
	written, ok := r.written[name]
	if !ok {
		return nil, false
	}
	p, _ := Lookup(name)
	if path := strings.TrimSpace(written); localPath.MatchString(path) {
		key := path[strings.LastIndex(path, "/")+1:]
		r.problem(name, "", "%s is %q, which is a path, and Parameter Store holds no files; write what the file has, with "+
			"--value file://%s of the AWS CLI, or upload it and write s3://bucket/%s",
			name, path, strings.TrimPrefix(path, "file://"), key)
		return nil, false
	}
	text, err := jsonText(written)
	if uri := strings.TrimSpace(written); err == nil && strings.HasPrefix(uri, "s3://") {
		if !IsObjectURI(uri) {
			r.problem(name, "", "%s is %s, which is no object in S3; allowed is %s; write, for example, s3://my-bucket/sawhorse/pools.json",
				name, Quoted(uri), p.Allowed)
			return nil, false
		}
		object, read := objects[uri]
		switch {
		case !read:
			r.warning(name, "", "%s is %s, which only a pass reads; to check its content, give the JSON itself", name, Quoted(uri))
			return nil, false
		case object.Problem != "":
			r.problem(name, "", "%s is %s, %s", name, Quoted(uri), object.Problem)
			return nil, false
		}
		text, err = jsonText(object.Text)
		if err == nil && strings.HasPrefix(text, "s3://") {
			err = errors.New("leads to another s3:// value")
		}
	}
	var flaws []flaw
	if err == nil {
		value, flaws, err = decode(text)
	}
	if err != nil {
		r.problem(name, "", "%s is %s and %v; allowed is %s; write, for example, %s", name, Quoted(strings.TrimSpace(written)), err,
			p.Allowed, p.Example)
		return nil, false
	}
	for _, f := range flaws {
		r.problem(name, f.path, "%s %s", f.path, f.what)
	}
	return value, true
}

// jsonText returns the JSON in a text, decoded from base64 where necessary. It returns an s3:// value unchanged.
func jsonText(written string) (string, error) {
	text := strings.TrimSpace(written)
	switch {
	case text == "":
		return "", errors.New("is empty")
	case strings.HasPrefix(text, "s3://"):
		return text, nil
	case text[0] != '{' && text[0] != '[':
		decoded, err := base64.StdEncoding.DecodeString(text) // ignores line breaks
		if err != nil {
			return "", errors.New("is neither JSON nor padded base64 of JSON")
		}
		if text = strings.TrimSpace(string(decoded)); text == "" || text[0] != '{' && text[0] != '[' {
			return "", errors.New("is base64 of something that is no JSON")
		}
	}
	if len(text) > MaxJSON {
		return "", fmt.Errorf("has %d bytes, more than %d", len(text), MaxJSON)
	}
	return text, nil
}

// JSONObject returns the JSON object in a text, which is written as it is or in base64. flaw is what is wrong with it, as the end of
// a sentence about the text, or "".
func JSONObject(written string) (object map[string]any, flaw string) {
	text, err := jsonText(written)
	if err != nil {
		return nil, err.Error()
	}
	value, flaws, err := decode(text)
	object, is := value.(map[string]any)
	switch {
	case err != nil:
		return nil, err.Error()
	case len(flaws) > 0:
		return nil, "has a flaw: " + flaws[0].path + " " + flaws[0].what
	case !is:
		return nil, "is no JSON object"
	}
	return object, ""
}

// IsJSON reports whether a text is JSON as a parameter may have it: no key is there twice, and nothing is behind its end.
func IsJSON(text string) bool {
	_, flaws, err := decode(text)
	return err == nil && len(flaws) == 0
}

// flaw is an error at one path of otherwise readable JSON.
type flaw struct{ path, what string }

// decode reads one JSON value strictly: duplicate keys, NUL characters and text after the value are refused. Numbers
// become int64 or float64.
func decode(text string) (any, []flaw, error) {
	if !utf8.ValidString(text) {
		return nil, nil, errors.New("is not valid UTF-8")
	}
	d := &decoder{Decoder: json.NewDecoder(strings.NewReader(text))}
	d.UseNumber()
	value, err := d.value("", 0)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("has something behind its end")
		}
	}
	switch {
	case errors.Is(err, errTooDeep):
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("is no JSON: it ends too early")
	case err != nil:
		err = fmt.Errorf("is no JSON (at character %d: %w)", d.InputOffset(), err)
	}
	return value, d.flaws, err
}

var errTooDeep = fmt.Errorf("is nested deeper than %d levels", maxDepth)

type decoder struct {
	*json.Decoder
	flaws []flaw
}

func (d *decoder) flaw(path, format string, args ...any) {
	d.flaws = append(d.flaws, flaw{path, fmt.Sprintf(format, args...)})
}

func (d *decoder) value(path string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return d.object(path, depth)
		}
		return d.array(path, depth)
	case json.Number:
		return d.number(path, t.String()), nil
	case string:
		d.text(path, t)
		return t, nil
	default:
		return t, nil // true, false, null
	}
}

// text refuses NUL characters, which a key or a text must not have.
func (d *decoder) text(path, text string) {
	if strings.ContainsRune(text, 0) {
		d.flaw(path, "has a NUL character; leave it out")
	}
}

func (d *decoder) object(path string, depth int) (any, error) {
	made := map[string]any{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		key := token.(string) // the decoder returns only strings as keys
		at := Join(path, key)
		d.text(at, key)
		if _, twice := made[key]; twice {
			d.flaw(at, "is there twice; keep one of them")
		}
		if made[key], err = d.value(at, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return made, err
}

func (d *decoder) array(path string, depth int) (any, error) {
	made := []any{}
	for d.More() {
		element, err := d.value(fmt.Sprintf("%s[%d]", path, len(made)), depth+1)
		if err != nil {
			return nil, err
		}
		made = append(made, element)
	}
	_, err := d.Token()
	return made, err
}

func (d *decoder) number(path, literal string) any {
	if n, err := strconv.ParseInt(literal, 10, 64); err == nil && literal != "-0" {
		return n
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || math.IsInf(f, 0) {
		d.flaw(path, "is the number %s, which is out of range; write a smaller one", Quoted(literal))
		return int64(0)
	}
	return f
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Join appends keys to a JSON path, for example nodePool.limits or
// nodePool.template.metadata.labels["convox.io/nodepool"].
func Join(path string, keys ...string) string {
	for _, key := range keys {
		switch {
		case !plainKey.MatchString(key):
			path += "[" + strconv.Quote(key) + "]"
		case path == "":
			path = key
		default:
			path += "." + key
		}
	}
	return path
}

// kindOf returns the JSON type of a decoded value, in words.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case string:
		return "text"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	case int64:
		return "a number"
	default:
		return "a number with decimals or an exponent"
	}
}

// Shown formats a decoded JSON value for a sentence, cut to 60 bytes.
func Shown(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		return kindOf(value)
	}
	return cut(string(encoded))
}
