package awsfake

import "context"

// Recorder keeps a rack's records of one kind in memory.
type Recorder struct {
	*Calls
	Kept map[string]string

	kind string
}

// NewBaselines returns an empty recorder of baselines. Its calls count among the cloud's.
func NewBaselines(cloud *Cloud) *Recorder { return newRecorder(cloud, "Baselines") }

// NewCheckpoints returns an empty recorder of checkpoints. Its calls count among the cloud's.
func NewCheckpoints(cloud *Cloud) *Recorder { return newRecorder(cloud, "Checkpoints") }

// NewContests returns an empty recorder of contests, whose calls are its own.
func NewContests() *Recorder { return newRecorder(New(), "Contests") }

func newRecorder(cloud *Cloud, kind string) *Recorder {
	return &Recorder{Calls: cloud.Calls, Kept: map[string]string{}, kind: kind}
}

// RecordOnce records a value, if none of that name exists.
func (r *Recorder) RecordOnce(_ context.Context, _, name string, value []byte) error {
	if err := r.call(r.kind+".Keep", name); err != nil {
		return err
	}
	if _, ok := r.Kept[name]; !ok {
		r.Kept[name] = string(value)
	}
	return nil
}

// Replace records a value in the place of another.
func (r *Recorder) Replace(_ context.Context, _, name string, value []byte) error {
	if err := r.call(r.kind+".Replace", name); err != nil {
		return err
	}
	r.Kept[name] = string(value)
	return nil
}

// Get returns what RecordOnce or Replace recorded.
func (r *Recorder) Get(_ context.Context, _, name string) ([]byte, bool, error) {
	if err := r.call(r.kind+".Get", name); err != nil {
		return nil, false, err
	}
	value, ok := r.Kept[name]
	return []byte(value), ok, nil
}

// Forget removes a record.
func (r *Recorder) Forget(_ context.Context, _, name string) error {
	if err := r.call(r.kind+".Forget", name); err != nil {
		return err
	}
	delete(r.Kept, name)
	return nil
}
