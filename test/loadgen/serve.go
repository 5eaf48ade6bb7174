package loadgen

import (
	"encoding/json"
	"net/http"
)

// Handler tells others what was recorded:
//   - GET /summary answers with the Summary as JSON;
//   - POST /phases?name=NAME begins a phase.
func Handler(recorder *Recorder) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /summary", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		// Whoever has hung up does not want to know.
		_ = json.NewEncoder(w).Encode(recorder.Summary())
	})
	mux.HandleFunc("POST /phases", func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Query().Get("name")
		if name == "" {
			http.Error(w, "a phase needs a name: POST /phases?name=NAME", http.StatusBadRequest)
			return
		}
		recorder.Begin(name)
	})
	return mux
}
