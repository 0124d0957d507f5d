package change

import (
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/store"
)

// A parameter that one change sets and the next one sets back within seconds is set back, although Parameter Store shows
// the state before the first.
func TestTakenBack(t *testing.T) {
	for _, before := range []map[string]string{{"a": "1"}, {}} {
		s := begin(t, before)
		s.cloud.Lag.Parameters = 40 * time.Second
		s.cloud.Pass(time.Hour)
		s.change(store.ChangeAccepted, "1", map[string]string{"a": "2"})
		s.wrote(s.call(), "a written")
		s.cloud.Pass(time.Second)
		if before["a"] == "" {
			s.change(store.ChangeAccepted, "2", nil, "a")
			s.wrote(s.call(), "a unset")
			continue
		}
		s.change(store.ChangeAccepted, "2", map[string]string{"a": "1"})
		s.wrote(s.call(), "a written")
	}
}
