package gateway

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
)

// reservations are the account's capacity reservations, which moto does not know. They end with the sandbox.
type reservations struct {
	mu  sync.Mutex
	all []reservation
}

// reservation is one of them, in the form of EC2's answers.
type reservation struct {
	ID        string `xml:"capacityReservationId"`
	Owner     string `xml:"ownerId"`
	Type      string `xml:"instanceType"`
	Platform  string `xml:"instancePlatform"`
	Zone      string `xml:"availabilityZone"`
	Total     int    `xml:"totalInstanceCount"`
	Available int    `xml:"availableInstanceCount"`
	Criteria  string `xml:"instanceMatchCriteria"`
	State     string `xml:"state"`
	Kind      string `xml:"reservationType"`
	// Interruptible is part of every answer, and Karpenter panics without it.
	Interruptible bool `xml:"interruptible"`
}

// reserves reports whether a call is about capacity reservations, or about placement groups, which moto does not know either.
func reserves(action string) bool {
	return strings.Contains(action, "CapacityReservation") || action == "DescribePlacementGroups"
}

// serveReservations answers a call about what reserves reports.
func (g *gateway) serveReservations(w http.ResponseWriter, req *http.Request, action string, body []byte) {
	form, err := url.ParseQuery(string(body))
	var result any
	if err == nil {
		result, err = g.reservationCall(req.Context(), action, form)
	}
	if err != nil {
		code, message, _ := strings.Cut(err.Error(), ": ")
		fault.Deny(w, req, "ec2", http.StatusBadRequest, code, message)
		return
	}
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	text, _ := xml.Marshal(result) // plain values can always be encoded
	fmt.Fprintf(w, "<%[1]sResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>sandbox</requestId>%[2]s</%[1]sResponse>",
		action, text)
}

func (g *gateway) reservationCall(ctx context.Context, action string, form url.Values) (any, error) {
	r := &g.reservations
	r.mu.Lock()
	defer r.mu.Unlock()
	switch action {
	case "CreateCapacityReservation":
		return r.create(form, g.cfg.Account)
	case "CancelCapacityReservation":
		return r.cancel(form.Get("CapacityReservationId"))
	case "DescribeCapacityReservations":
		used := map[string]int{}
		if g.cfg.Reserved != nil && len(r.all) > 0 {
			var err error
			if used, err = g.cfg.Reserved(ctx); err != nil {
				return nil, fmt.Errorf("InternalError: %w", err)
			}
		}
		return r.describe(form, used)
	case "DescribePlacementGroups": // the account has none
		return struct {
			XMLName xml.Name `xml:"placementGroupSet"`
		}{}, nil
	}
	return nil, fmt.Errorf("InvalidAction: the sandbox has no %s", action)
}

// created is the element of an answer that has one reservation.
type created struct {
	XMLName xml.Name `xml:"capacityReservation"`
	reservation
}

func (r *reservations) create(form url.Values, account string) (any, error) {
	total, err := strconv.Atoi(form.Get("InstanceCount"))
	if err != nil {
		return nil, fmt.Errorf("InvalidParameterValue: InstanceCount: %w", err)
	}
	criteria := form.Get("InstanceMatchCriteria")
	if criteria == "" {
		criteria = "open"
	}
	one := reservation{
		ID: fmt.Sprintf("cr-%017x", len(r.all)+1), Owner: account, Type: form.Get("InstanceType"), Platform: form.Get("InstancePlatform"),
		Zone: form.Get("AvailabilityZone"), Total: total, Available: total, Criteria: criteria, State: "active", Kind: "default",
	}
	r.all = append(r.all, one)
	return created{reservation: one}, nil
}

func (r *reservations) cancel(id string) (any, error) {
	i := slices.IndexFunc(r.all, func(one reservation) bool { return one.ID == id })
	if i < 0 {
		return nil, noReservation(id)
	}
	r.all[i].State = "cancelled"
	return struct {
		XMLName xml.Name `xml:"return"`
		Text    string   `xml:",chardata"`
	}{Text: "true"}, nil
}

func noReservation(id string) error {
	return fmt.Errorf("InvalidCapacityReservationId.NotFound: The capacity reservation %s does not exist", id)
}

// list is the element of an answer that has several reservations.
type list struct {
	XMLName xml.Name      `xml:"capacityReservationSet"`
	Items   []reservation `xml:"item"`
}

func (r *reservations) describe(form url.Values, used map[string]int) (any, error) {
	found := list{}
	for _, one := range r.all {
		one.Available = max(0, one.Total-used[one.ID])
		if one.State != "active" {
			one.Available = 0
		}
		found.Items = append(found.Items, one)
	}
	if ids := numbered(form, "CapacityReservationId"); len(ids) > 0 {
		for _, id := range ids {
			if !slices.ContainsFunc(found.Items, func(one reservation) bool { return one.ID == id }) {
				return nil, noReservation(id)
			}
		}
		found.Items = slices.DeleteFunc(found.Items, func(one reservation) bool { return !slices.Contains(ids, one.ID) })
	}
	for i := 1; form.Has(fmt.Sprintf("Filter.%d.Name", i)); i++ {
		filter := fmt.Sprintf("Filter.%d.", i)
		wanted := numbered(form, filter+"Value")
		found.Items = slices.DeleteFunc(found.Items, func(one reservation) bool {
			return !slices.Contains(wanted, one.field(form.Get(filter+"Name")))
		})
	}
	return found, nil
}

// field returns what a filter compares. The sandbox's reservations have no tags.
func (r reservation) field(filter string) string {
	return map[string]string{
		"state": r.State, "owner-id": r.Owner, "instance-match-criteria": r.Criteria, "instance-type": r.Type, "availability-zone": r.Zone,
	}[filter]
}

// numbered returns the values of name.1, name.2, ….
func numbered(form url.Values, name string) (values []string) {
	for i := 1; form.Has(fmt.Sprintf("%s.%d", name, i)); i++ {
		values = append(values, form.Get(fmt.Sprintf("%s.%d", name, i)))
	}
	return values
}
