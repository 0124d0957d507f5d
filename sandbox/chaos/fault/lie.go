package fault

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
)

// False answers of an API server, in place of executing the request.
const (
	Redirect Kind = "redirect" // to another server, which would receive the token
	Flood    Kind = "flood"    // an answer without end
	Endless  Kind = "endless"  // a list that always has another page
	Bomb     Kind = "bomb"     // a Helm release that unpacks to a thousand times its size
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
	Endless: list("List", "further", ""),
	Bomb: func(w http.ResponseWriter, req *http.Request) {
		var packed bytes.Buffer
		helms := base64.NewEncoder(base64.StdEncoding, &packed)
		zip := gzip.NewWriter(helms)
		for range 64 {
			_, _ = zip.Write(make([]byte, 1<<20)) // writes to a Buffer do not fail
		}
		_, _ = zip.Close(), helms.Close()
		secret := fmt.Sprintf(`{"metadata":{"name":"bomb","namespace":"kube-system"},"data":{"release":%q}}`,
			base64.StdEncoding.EncodeToString(packed.Bytes()))
		list("SecretList", "", secret)(w, req)
	},
}

// list answers every request with a list.
func list(kind, further, items string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		// fails if the caller is gone
		_, _ = io.WriteString(w, fmt.Sprintf(`{"kind":%q,"apiVersion":"v1","metadata":{"continue":%q},"items":[%s]}`, kind, further, items))
	}
}
