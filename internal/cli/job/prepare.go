package job

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/workdir"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// ignoreGitignore is the variable by which Ray's users switch off that .gitignore files matter.
const ignoreGitignore = "RAY_RUNTIME_ENV_IGNORE_GITIGNORE"

// prepared is everything that was found out on this machine, before anything is made.
type prepared struct {
	job         *rayv1.RayJob
	request     dashboard.SubmitRequest
	environment *environment
	header      http.Header
	tls         *tls.Config
	// upload is the package of the working directory, nil when the directory is a URI.
	upload *workdir.Package
}

// prepare reads and checks the flags, the files that they name, and the command.
func prepare(env *kube.Env, f *flags, args []string) (*prepared, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	job, err := rayJob(env, f)
	if err != nil {
		return nil, err
	}
	p := &prepared{job: job}
	if p.environment, err = environmentOf(f, job.Spec.RuntimeEnvYAML); err != nil {
		return nil, err
	}
	if err := p.fillRequest(f, args); err != nil {
		return nil, err
	}
	if err := p.readConnection(f); err != nil {
		return nil, err
	}
	return p, p.checkToken(f)
}

// fillRequest makes the submission of what the flags say, or else of what the RayJob says, and shows it in the RayJob.
func (p *prepared) fillRequest(f *flags, args []string) error {
	spec := &p.job.Spec
	if len(args) > 0 {
		spec.Entrypoint = commandLine(args)
	}
	if strings.TrimSpace(spec.Entrypoint) == "" {
		return errors.New("no command to run: give it after two dashes, for example -- python main.py")
	}
	if f.metadataJSON != "" {
		spec.Metadata = nil
		if err := json.Unmarshal([]byte(f.metadataJSON), &spec.Metadata); err != nil {
			return fmt.Errorf("--metadata-json must be a JSON object of texts: %w", err)
		}
	}
	if f.resources != "" {
		spec.EntrypointResources = f.resources
	}
	p.request = dashboard.SubmitRequest{Entrypoint: spec.Entrypoint, Metadata: maps.Clone(spec.Metadata), RuntimeEnv: p.environment.fields}
	if spec.EntrypointResources != "" {
		if err := json.Unmarshal([]byte(spec.EntrypointResources), &p.request.EntrypointResources); err != nil {
			return fmt.Errorf("the entrypoint's resources must be a JSON object of numbers: %w", err)
		}
	}
	if f.changed("entrypoint-num-cpus") {
		spec.EntrypointNumCpus = float32(f.numCPUs)
	}
	if f.changed("entrypoint-num-gpus") {
		spec.EntrypointNumGpus = float32(f.numGPUs)
	}
	p.request.EntrypointNumCPUs, p.request.EntrypointNumGPUs = reserved(spec.EntrypointNumCpus), reserved(spec.EntrypointNumGpus)
	if f.memory > 0 {
		p.request.EntrypointMemory = &f.memory
	}
	if f.submissionID != "" {
		spec.JobId = f.submissionID
	}
	p.request.SubmissionID = spec.JobId
	if p.request.SubmissionID == "" {
		p.request.SubmissionID = newSubmissionID()
	}
	return nil
}

// reserved keeps the decimal that the user wrote: 0.1 must not become 0.10000000149.
func reserved(number float32) *float64 {
	if number == 0 {
		return nil
	}
	exact, err := strconv.ParseFloat(strconv.FormatFloat(float64(number), 'g', -1, 32), 64)
	if err != nil {
		return ptr.To(float64(number))
	}
	return &exact
}

// idLength is the number of random characters of a submission id, as Ray draws them.
const idLength = 16

// newSubmissionID draws an id like those that Ray gives.
func newSubmissionID() string { return "raysubmit_" + rand.Text()[:idLength] }

var (
	// beforeQuote are the backslashes before a quote, and the quote.
	beforeQuote = regexp.MustCompile(`(\\*)"`)
	// beforeEnd are the backslashes at the end, where a quote will follow.
	beforeEnd = regexp.MustCompile(`(\\+)$`)
)

// commandLine joins the arguments as the ray command does: those with blanks are put in double quotes, so that variables in
// them are replaced on the cluster. Quotes in an argument, and backslashes before a quote, get a backslash. A single argument
// is a whole command line.
func commandLine(args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = beforeQuote.ReplaceAllString(arg, `$1$1\"`)
		if arg == "" || strings.ContainsAny(arg, " \t") {
			quoted[i] = `"` + beforeEnd.ReplaceAllString(quoted[i], `$1$1`) + `"`
		}
	}
	return strings.Join(quoted, " ")
}

// readConnection reads how to reach the dashboard.
func (p *prepared) readConnection(f *flags) error {
	if f.address != "" {
		address, err := url.Parse(f.address)
		if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
			return fmt.Errorf("--address %q must be a URL such as http://localhost:8265", f.address)
		}
	}
	p.header = http.Header{}
	if f.headers != "" {
		var headers map[string]string
		if err := json.Unmarshal([]byte(f.headers), &headers); err != nil {
			return fmt.Errorf("--headers must be a JSON object of texts: %w", err)
		}
		for name, value := range headers {
			p.header.Set(name, value)
		}
	}
	p.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	if trusted, err := strconv.ParseBool(f.verify); err == nil {
		p.tls.InsecureSkipVerify = !trusted
		return nil
	}
	certificates, err := os.ReadFile(f.verify)
	if err != nil {
		return fmt.Errorf("--verify must be true, false, or a file with certificates: %w", err)
	}
	p.tls.RootCAs = x509.NewCertPool()
	if !p.tls.RootCAs.AppendCertsFromPEM(certificates) {
		return fmt.Errorf("--verify: %s holds no certificates", f.verify)
	}
	return nil
}

// pack makes the package of the working directory.
func (p *prepared) pack(ctx context.Context) error {
	if p.environment.directory == "" {
		return nil
	}
	ignore := workdir.GitignoreFiles
	if os.Getenv(ignoreGitignore) == "1" {
		ignore = workdir.NoGitignoreFiles
	}
	excludes := slices.Concat(workdir.DefaultExcludes(os.LookupEnv), p.environment.excludes)
	upload, err := workdir.Pack(ctx, p.environment.directory, excludes, ignore)
	if err != nil {
		return err
	}
	p.upload = upload
	p.request.RuntimeEnv[envWorkingDir] = dashboard.PackageURI(upload.Name)
	return nil
}

// cleanUp deletes the package from this machine.
func (p *prepared) cleanUp(errOut io.Writer) {
	if p.upload == nil {
		return
	}
	if err := p.upload.Remove(); err != nil {
		_, _ = fmt.Fprintln(errOut, "Warning:", err)
	}
}
