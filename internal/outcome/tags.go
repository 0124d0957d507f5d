package outcome

// LackingTags returns the wanted tags that a resource does not carry or carries with another value; nil if it has them
// all. It ignores all other tags: others may have set them, so no step ever removes a tag.
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
