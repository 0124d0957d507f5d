package autoscaler

import (
	"slices"
	"strings"
)

// targetFlags say what Cluster Autoscaler scales. Every other flag is its owner's.
var targetFlags = []string{"nodes", "node-group-auto-discovery"}

// target reports whether an argument is a target flag, and whether its value is the next argument.
func target(arg string) (is, valueFollows bool) {
	if !strings.HasPrefix(arg, "-") {
		return false, false
	}
	name, _, whole := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return slices.Contains(targetFlags, name), !whole
}

// split removes the target flags from an argument list. at is the position of the first one, -1 if there is none.
func split(list []string) (rest, targets []string, at int) {
	at = -1
	for i := 0; i < len(list); i++ {
		is, valueFollows := target(list[i])
		if !is {
			rest = append(rest, list[i])
			continue
		}
		if at < 0 {
			at = len(rest)
		}
		targets = append(targets, list[i])
		if valueFollows && i+1 < len(list) {
			i++
			targets = append(targets, list[i])
		}
	}
	return rest, targets, at
}

// line is a container's command and args. Flags may be in either: Cluster Autoscaler's example manifests have all of
// them in command.
type line struct {
	Command []string `json:"command"`
	Args    []string `json:"args"`
}

// values returns the values of a target flag, however it is written, also inside a shell command line.
func (l line) values(flag string) []string {
	var words, all []string
	for _, arg := range slices.Concat(l.Command, l.Args) {
		for _, word := range strings.Fields(arg) {
			words = append(words, strings.Trim(word, `"'`))
		}
	}
	for i, word := range words {
		name, value, whole := strings.Cut(strings.TrimLeft(word, "-"), "=")
		switch {
		case !strings.HasPrefix(word, "-") || name != flag:
		case whole:
			all = append(all, strings.Trim(value, `"'`))
		case i+1 < len(words):
			all = append(all, words[i+1])
		}
	}
	return all
}

// targets reports whether a target flag is among the arguments.
func (l line) targets() bool {
	return slices.ContainsFunc(slices.Concat(l.Command, l.Args), func(arg string) bool { is, _ := target(arg); return is })
}

// retarget replaces the target flags with these arguments, in the same place or at the end if there are none. It does
// not repeat arguments that are present already, and keeps all others.
func (l line) retarget(wanted []string) line {
	command, _, inCommand := split(l.Command)
	args, _, inArgs := split(l.Args)
	var missing []string
	for _, arg := range wanted {
		if !slices.Contains(command, arg) && !slices.Contains(args, arg) {
			missing = append(missing, arg)
		}
	}
	switch {
	case inCommand >= 0:
		command = slices.Insert(command, inCommand, missing...)
	case inArgs >= 0:
		args = slices.Insert(args, inArgs, missing...)
	case len(args) == 0 && len(command) > 0:
		command = append(command, missing...)
	default:
		args = append(args, missing...)
	}
	return line{command, args}
}

// restored returns the recorded line. If somebody has changed other arguments since, it returns those with the recorded
// targets.
func (l line) restored(kept line) line {
	if l.others().equal(kept.others()) {
		return kept
	}
	_, command, _ := split(kept.Command)
	_, args, _ := split(kept.Args)
	return l.retarget(append(command, args...))
}

func (l line) others() line {
	command, _, _ := split(l.Command)
	args, _, _ := split(l.Args)
	return line{command, args}
}

func (l line) equal(other line) bool {
	return slices.Equal(l.Command, other.Command) && slices.Equal(l.Args, other.Args)
}

// inShell reports whether target flags are part of a longer text, as in `sh -c "cluster-autoscaler --nodes=…"`. They
// cannot be changed there.
func (l line) inShell() bool {
	for _, arg := range slices.Concat(l.Command, l.Args) {
		if is, _ := target(arg); is || !strings.ContainsAny(arg, " \n\t") {
			continue
		}
		for _, flag := range targetFlags {
			if strings.Contains(arg, "--"+flag) {
				return true
			}
		}
	}
	return false
}
