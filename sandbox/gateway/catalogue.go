package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// catalogued are EC2 calls about instance types and spot prices. Their answers never change here, moto takes seconds
// for each, and Karpenter makes all of them before it is ready.
var catalogued = map[string]bool{
	"DescribeInstanceTypes": true, "DescribeInstanceTypeOfferings": true, "DescribeSpotPriceHistory": true,
}

// catalogue caches moto's answers to these calls.
type catalogue struct {
	dir   string // keeps the answers between two starts; memory only if empty
	amend func([]byte) ([]byte, error)

	mu      sync.Mutex
	answers map[string]*answer
}

// answer is one of moto's answers. The first caller fetches it, and the others wait for it.
type answer struct {
	once sync.Once
	body []byte
	err  error
}

func newCatalogue(cfg Config) *catalogue {
	amend := func(text []byte) ([]byte, error) { return spotPrices(text, cfg.Prices) }
	return &catalogue{dir: cfg.Catalogue, amend: amend, answers: map[string]*answer{}}
}

// serveCatalogue answers a call from the catalogue.
func (g *gateway) serveCatalogue(w http.ResponseWriter, req *http.Request, body []byte) {
	all, families := everyOffering(body)
	text, err := g.catalogue.get(all, func() ([]byte, error) { return g.askMoto(req, all) })
	text = offeringsOf(text, families)
	if err != nil {
		http.Error(w, "gateway: ask moto's catalogue: "+err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	_, _ = w.Write(text) // fails only if the caller has closed the connection
}

// everyOffering returns a call for offerings without its filter, and the families that the filter asks for: moto knows no wildcards.
// It returns other calls as they are.
func everyOffering(body []byte) (all []byte, families []string) {
	form, _ := url.ParseQuery(string(body))
	if form.Get("Action") != "DescribeInstanceTypeOfferings" {
		return body, nil
	}
	for name, values := range form {
		if strings.HasPrefix(name, "Filter.") {
			if family, is := strings.CutSuffix(values[0], ".*"); is {
				families = append(families, family)
			}
			form.Del(name)
		}
	}
	if families == nil {
		return body, nil
	}
	return []byte(form.Encode()), families
}

var offering = regexp.MustCompile(`(?s)<item>.*?<instanceType>([^.]*)\..*?</item>`)

// offeringsOf leaves of an answer the offerings of some families; all for nil.
func offeringsOf(text []byte, families []string) []byte {
	if families == nil {
		return text
	}
	return offering.ReplaceAllFunc(text, func(item []byte) []byte {
		if slices.Contains(families, string(offering.FindSubmatch(item)[1])) {
			return item
		}
		return nil
	})
}

// get returns the answer to a call from memory, from the folder, or by fetching it. Errors are not cached.
func (c *catalogue) get(body []byte, fetch func() ([]byte, error)) ([]byte, error) {
	key := question(body)
	c.mu.Lock()
	a := c.answers[key]
	if a == nil {
		a = &answer{}
		c.answers[key] = a
	}
	c.mu.Unlock()
	a.once.Do(func() {
		if a.body, a.err = c.load(key, fetch); a.err == nil {
			a.body, a.err = c.amend(a.body)
		}
	})
	if a.err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.answers[key] == a {
			delete(c.answers, key)
		}
	}
	return a.body, a.err
}

// question returns a name for a call that depends on its parameters but not on the time of the call.
func question(body []byte) string {
	form, _ := url.ParseQuery(string(body)) // a call that does not parse has been rejected before
	form.Del("StartTime")
	form.Del("EndTime")
	return fmt.Sprintf("%s-%x.xml", form.Get("Action"), sha256.Sum256([]byte(form.Encode())))
}

func (c *catalogue) load(name string, fetch func() ([]byte, error)) ([]byte, error) {
	if c.dir == "" {
		return fetch()
	}
	path := filepath.Join(c.dir, name)
	if body, err := os.ReadFile(path); err == nil {
		return body, nil
	}
	body, err := fetch()
	if err != nil {
		return nil, err
	}
	return body, save(path, body)
}

// save writes a file completely or not at all.
func save(path string, body []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "new-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // after a successful rename the file no longer exists
	if _, err := file.Write(body); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

func (g *gateway) askMoto(req *http.Request, body []byte) ([]byte, error) {
	// The answer is for all callers that wait: it must not be cancelled when the first of them goes away.
	ask := req.Clone(context.WithoutCancel(req.Context()))
	ask.URL.Scheme, ask.URL.Host = g.cfg.Moto.Scheme, g.cfg.Moto.Host
	ask.RequestURI, ask.Body, ask.ContentLength = "", io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp, err := g.transport.RoundTrip(ask)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %.200s", resp.Status, text)
	}
	return text, nil
}

// spotShare is the price of a spot instance as a share of its on-demand price.
const spotShare = 0.35

var (
	spotItem  = regexp.MustCompile(`<item>.*?<instanceType>([^<]+)</instanceType>.*?</item>`)
	spotPrice = regexp.MustCompile(`<spotPrice>[^<]*</spotPrice>`)
)

// spotPrices replaces the prices in moto's spot price history, where all types cost the same, and removes types without
// an on-demand price. Otherwise Karpenter would launch the largest machine for a small pod.
func spotPrices(text []byte, onDemand func() (map[string]float64, error)) ([]byte, error) {
	if onDemand == nil || !bytes.Contains(text, []byte("<spotPriceHistorySet>")) {
		return text, nil
	}
	prices, err := onDemand()
	if err != nil {
		return nil, err
	}
	return spotItem.ReplaceAllFunc(text, func(item []byte) []byte {
		price, ok := prices[string(spotItem.FindSubmatch(item)[1])]
		if !ok {
			return nil
		}
		return spotPrice.ReplaceAll(item, fmt.Appendf(nil, "<spotPrice>%.6f</spotPrice>", price*spotShare))
	}), nil
}
