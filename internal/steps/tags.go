package steps

// LackingTags are the wanted tags that a resource does not carry, or carries with another value; nil where it has them all.
// Its other tags do not count: they may be somebody else's, so no step ever removes one.
func LackingTags(live, wanted map[string]string) map[string]string {
	var lacking map[string]string
	for key, value := range wanted {
		if have, ok := live[key]; ok && have == value {
			continue
		}
		if lacking == nil {
			lacking = map[string]string{}
		}
		lacking[key] = value
	}
	return lacking
}
