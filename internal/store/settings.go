package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// Values are the values of a rack's parameters.
type Values struct {
	// Params has the texts of the parameters that have not their default. Objects has the texts behind those that are s3:// URIs,
	// by URI.
	Params  map[string]string `json:"params"`
	Objects map[string]string `json:"objects,omitempty"`
}

// Digest identifies the values.
func (v Values) Digest() string {
	all := []any{v.Params}
	if len(v.Objects) > 0 {
		all = append(all, v.Objects)
	}
	return digestOf(canonical.JSON(all))
}

// Text returns what a parameter stands for: the text behind an s3:// URI, if that is known, or else its value.
func (v Values) Text(name string) string {
	value := v.Params[name]
	if object, is := v.Objects[strings.TrimSpace(value)]; is {
		return object
	}
	return value
}

// Differ returns the sorted names of the parameters that have other values in other.
func (v Values) Differ(other Values) (names []string) {
	for _, params := range []map[string]string{v.Params, other.Params} {
		for name := range params {
			if v.Params[name] != other.Params[name] || v.Text(name) != other.Text(name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Settings are the values that validate has found for an iteration, for the snapshot that its report makes of them.
type Settings struct {
	Rack string `json:"rack"`
	Values
	// Changes are the changes that wrote some of the values, since the last snapshot.
	Changes []WrittenBy `json:"changes,omitempty"`
	// Size is how many bytes the values would take if that is too much. There are no values then.
	Size int `json:"size,omitempty"`
	// Of is the Digest of the values, also of those that are too large.
	Of string `json:"of"`
}

// WrittenBy is a change with what it wrote.
type WrittenBy struct {
	// Version is that of the parameter change.
	Version int64  `json:"version"`
	Note    string `json:"note,omitempty"`
	// Names maps parameters to the versions that the change made.
	Names map[string]int64 `json:"names"`
}

// MostValues is how many bytes the values of a rack may have, compressed, to be kept. DynamoDB takes 400 KB for an item.
const MostValues = 380_000

// settingsKey is the key of a rack's settings. They are next to the plan, which few functions may write: a snapshot is made of them.
func settingsKey(rack string) item {
	return item{"pk": text(ownership.PartitionPlan + rack), "sk": text("settings")}
}

// SaveSettings replaces the settings of a rack.
func (s *Store) SaveSettings(ctx context.Context, settings Settings) error {
	settings.Of = settings.Digest()
	if size := len(packed(settings).(*types.AttributeValueMemberB).Value); size > MostValues {
		settings.Values, settings.Size = Values{}, size
	}
	values := settingsKey(settings.Rack)
	values["settings"] = packed(settings)
	return wrap(s.put(ctx, values, nil), "rack %s: save settings", settings.Rack)
}

// Settings returns the settings of a rack, or nil if there are none.
func (s *Store) Settings(ctx context.Context, rack string) (*Settings, error) {
	settings := &Settings{}
	found, err := s.load(ctx, settingsKey(rack), rack, "settings", "settings", settings)
	if err != nil || !found {
		return nil, err
	}
	if settings.Rack != rack { // a snapshot of them would be put into force in this rack
		return nil, fmt.Errorf("rack %s: the table has the settings of rack %q in their place; "+
			"delete the item and look in CloudTrail who wrote it", rack, settings.Rack)
	}
	return settings, nil
}
