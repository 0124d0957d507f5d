package k8s

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// What is read of a log: its end, in lines and bytes.
const (
	logLines = 200
	logBytes = 64 << 10
)

// LogErrors returns the last different errors in the log of a pod's first container, the newest one last: of the process that
// ended last, if one has, and of the present one. A log that cannot be read has none.
func (c *Client) LogErrors(ctx context.Context, pod *corev1.Pod) []string {
	var found []string
	for _, previous := range []bool{true, false} {
		text, err := c.log(ctx, pod, previous)
		if err == nil {
			found = append(found, errorsIn(text)...)
		}
	}
	slices.Reverse(found) // of equal errors the newest one stays
	var last []string
	for _, line := range found {
		if !slices.Contains(last, line) {
			last = append(last, line)
		}
	}
	last = last[:min(len(last), 3)]
	slices.Reverse(last)
	return last
}

func (c *Client) log(ctx context.Context, pod *corev1.Pod, previous bool) (string, error) {
	client, err := c.plain()
	if err != nil {
		return "", err
	}
	text, err := client.Get().AbsPath("api/v1/namespaces", pod.Namespace, "pods", pod.Name, "log").
		Param("container", pod.Spec.Containers[0].Name).Param("previous", fmt.Sprint(previous)).
		Param("tailLines", fmt.Sprint(logLines)).Param("limitBytes", fmt.Sprint(logBytes)).MaxRetries(0).Do(ctx).Raw()
	return string(text), err
}

// errorsIn returns the errors in a log of Karpenter: the lines of level ERROR, and how Go says that a process panicked.
func errorsIn(log string) (found []string) {
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		var entry struct {
			Level, Message, Error string
			Panic                 any
		}
		switch {
		case strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "):
			found = append(found, line)
		case json.Unmarshal([]byte(line), &entry) != nil || entry.Level != "ERROR" && entry.Level != "PANIC" && entry.Level != "FATAL":
		default:
			text := entry.Message
			if entry.Panic != nil {
				text += ": " + fmt.Sprint(entry.Panic)
			}
			if entry.Error != "" {
				text += ": " + entry.Error
			}
			found = append(found, text)
		}
	}
	return found
}
