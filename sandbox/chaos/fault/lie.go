package fault

import (
	"bytes"
	"io"
	"net/http"
)

// False answers of an API server, in place of executing the request.
const (
	Redirect Kind = "redirect" // to another server, which would receive the token
	Flood    Kind = "flood"    // an answer without end
	Endless  Kind = "endless"  // a list that always has another page
)

var lies = map[Kind]http.HandlerFunc{
	Redirect: func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, "https://127.0.0.1:1"+req.URL.Path, http.StatusTemporaryRedirect)
	},
	Flood: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for block := bytes.Repeat([]byte(" "), 1<<20); ; {
			if _, err := w.Write(block); err != nil {
				return // the caller has closed the connection
			}
		}
	},
	Endless: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		// fails if the caller is gone
		_, _ = io.WriteString(w, `{"kind":"List","apiVersion":"v1","metadata":{"continue":"further"},"items":[]}`)
	},
}
