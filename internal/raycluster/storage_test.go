package raycluster

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// redisAt makes the GCS keep its state in Redis.
func redisAt(address string, edits ...func(*rayv1.GcsFaultToleranceOptions)) func(*rayv1.RayCluster) {
	return func(c *rayv1.RayCluster) {
		c.Spec.GcsFaultToleranceOptions = &rayv1.GcsFaultToleranceOptions{RedisAddress: address}
		for _, edit := range edits {
			edit(c.Spec.GcsFaultToleranceOptions)
		}
	}
}

// onVolume makes the GCS keep its state on a volume.
func onVolume(edits ...func(*rayv1.GcsEmbeddedStorage)) func(*rayv1.RayCluster) {
	return func(c *rayv1.RayCluster) {
		storage := &rayv1.GcsEmbeddedStorage{}
		for _, edit := range edits {
			edit(storage)
		}
		c.Spec.GcsFaultToleranceOptions = &rayv1.GcsFaultToleranceOptions{Backend: rayv1.GcsBackendRocksDB, Storage: storage}
	}
}

func fromSecret(name, key string) *rayv1.RedisCredential {
	return &rayv1.RedisCredential{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}}}
}

func annotations(pairs ...string) func(*rayv1.RayCluster) {
	return func(c *rayv1.RayCluster) {
		c.Annotations = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			c.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

func headEnv(pairs ...string) func(*rayv1.RayCluster) {
	return func(c *rayv1.RayCluster) {
		for i := 0; i < len(pairs); i += 2 {
			headContainer(c).Env = append(headContainer(c).Env, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
		}
	}
}

func TestTheHeadIsToldWhereItsStateGoes(t *testing.T) {
	both := redisAt("r:6379", func(o *rayv1.GcsFaultToleranceOptions) {
		o.RedisUsername, o.RedisPassword, o.ExternalStorageNamespace = &rayv1.RedisCredential{Value: "u"}, fromSecret("s", "k"), "mine"
	})
	for name, tc := range map[string]struct {
		given         *rayv1.RayCluster
		wantFT        string
		wantNamespace string
		wantEnv       map[string]string // a value from elsewhere is written as its name
		wantFlags     []string
		wantWorker    string
	}{
		"without fault tolerance nothing is said": {given: demoCluster(), wantFT: "false"},
		"Redis by the options": {given: demoCluster(redisAt("r:6379")), wantFT: "true", wantNamespace: "u-1",
			wantEnv: map[string]string{envRedisAddress: "r:6379", envStorageNamespace: "u-1"}, wantWorker: "600"},
		"Redis by the options, with credentials and a namespace": {given: demoCluster(both), wantFT: "true", wantNamespace: "mine",
			wantEnv:   map[string]string{envRedisAddress: "r:6379", envStorageNamespace: "mine", envRedisUsername: "u", envRedisPassword: "s/k"},
			wantFlags: []string{`--redis-password="$REDIS_PASSWORD"`, `--redis-username="$REDIS_USERNAME"`}, wantWorker: "600"},
		"Redis by the annotation": {given: demoCluster(annotations(rayv1.AnnotationFTEnabled, "True"), headEnv(envRedisAddress, "r:6379")),
			wantFT: "true", wantNamespace: "u-1", wantEnv: map[string]string{envRedisAddress: "r:6379", envStorageNamespace: "u-1"}, wantWorker: "600"},
		"Redis by the annotation, with a password as a parameter": {
			given: demoCluster(annotations(rayv1.AnnotationFTEnabled, "true", rayv1.AnnotationExternalStorageNamespace, "mine"),
				headEnv(envRedisAddress, "r:6379"), func(c *rayv1.RayCluster) {
					c.Spec.HeadGroupSpec.RayStartParams = map[string]string{paramRedisPassword: "secret"}
				}),
			wantFT: "true", wantNamespace: "mine", wantWorker: "600", wantFlags: []string{"--redis-password=secret"},
			wantEnv: map[string]string{envRedisAddress: "r:6379", envStorageNamespace: "mine", envRedisPassword: "secret"}},
		"a namespace in the environment is the one that counts": {
			given:  demoCluster(redisAt("r:6379"), headEnv(envStorageNamespace, "own")),
			wantFT: "true", wantNamespace: "u-1", wantEnv: map[string]string{envRedisAddress: "r:6379", envStorageNamespace: "own"}, wantWorker: "600"},
		"a volume": {given: demoCluster(onVolume()), wantFT: "true",
			wantEnv: map[string]string{envStorage: "rocksdb", envStoragePath: "/data/gcs"}, wantWorker: "600"},
	} {
		t.Run(name, func(t *testing.T) {
			head, worker := headOf(tc.given), workerOf(tc.given)
			if got := head.Annotations[rayv1.AnnotationFTEnabled]; got != tc.wantFT {
				t.Errorf("%s is %q, want %q", rayv1.AnnotationFTEnabled, got, tc.wantFT)
			}
			if got := head.Annotations[rayv1.AnnotationExternalStorageNamespace]; got != tc.wantNamespace {
				t.Errorf("the storage namespace is %q, want %q", got, tc.wantNamespace)
			}
			container := head.Spec.Containers[0]
			if d := cmp.Diff(tc.wantEnv, storageEnv(container)); d != "" {
				t.Errorf("environment (-want +got):\n%s", d)
			}
			for _, flag := range tc.wantFlags {
				if start := envOf(container)["KUBERAY_GEN_RAY_START_CMD"]; !strings.Contains(start, " "+flag) {
					t.Errorf("%q lacks %s", start, flag)
				}
			}
			if got := envOf(worker.Spec.Containers[0])[envReconnectTimeout]; got != tc.wantWorker {
				t.Errorf("workers wait %q for the head, want %q", got, tc.wantWorker)
			}
		})
	}
}

// storageEnv are the variables that say where the state goes, nil when there is none.
func storageEnv(container corev1.Container) map[string]string {
	var env map[string]string
	for _, v := range container.Env {
		switch v.Name {
		case envRedisAddress, envStorageNamespace, envRedisUsername, envRedisPassword, envStorage, envStoragePath:
			if env == nil {
				env = map[string]string{}
			}
			env[v.Name] = v.Value
			if v.ValueFrom != nil {
				env[v.Name] = v.ValueFrom.SecretKeyRef.Name + "/" + v.ValueFrom.SecretKeyRef.Key
			}
		}
	}
	return env
}

func TestTheVolumeIsMounted(t *testing.T) {
	head := headOf(demoCluster(onVolume(func(s *rayv1.GcsEmbeddedStorage) { s.ClaimName, s.SubPath = "mine", "a/b" })))
	if got := head.Spec.Volumes[0].PersistentVolumeClaim; head.Spec.Volumes[0].Name != "gcs-storage" || got == nil || got.ClaimName != "mine" {
		t.Errorf("volumes are %v", head.Spec.Volumes)
	}
	want := corev1.VolumeMount{Name: "gcs-storage", MountPath: "/data/gcs", SubPath: "a/b"}
	if d := cmp.Diff(want, head.Spec.Containers[0].VolumeMounts[0]); d != "" {
		t.Errorf("mount (-want +got):\n%s", d)
	}
}

func TestStorageIsChecked(t *testing.T) {
	gateOn := func(s *Settings) { s.EmbeddedStorage = true }
	size := resource.MustParse("2Gi")
	for name, tc := range map[string]struct {
		given *rayv1.RayCluster
		gate  func(*Settings)
		want  []string // the beginnings of the errors
	}{
		"an address":                 {given: demoCluster(redisAt("r.ns.svc:6379"))},
		"an address with a scheme":   {given: demoCluster(redisAt("rediss://r:6379"))},
		"several addresses":          {given: demoCluster(redisAt("r-0:6379, r-1:6379"))},
		"an address from a variable": {given: demoCluster(redisAt("$(HOST):6379"))},
		"an IPv6 address":            {given: demoCluster(redisAt("redis://[::1]:6379"))},
		"no address":                 {given: demoCluster(redisAt(" ")), want: []string{"spec.gcsFaultToleranceOptions.redisAddress: Required value: must be the address of a Redis server"}},
		"no port":                    {given: demoCluster(redisAt("r")), want: []string{`spec.gcsFaultToleranceOptions.redisAddress: Invalid value: "r": must be the address of a Redis server`}},
		"a port that is none":        {given: demoCluster(redisAt("r:70000")), want: []string{`spec.gcsFaultToleranceOptions.redisAddress: Invalid value`}},
		"another scheme":             {given: demoCluster(redisAt("http://r:6379")), want: []string{`spec.gcsFaultToleranceOptions.redisAddress: Invalid value`}},
		"one good and one bad":       {given: demoCluster(redisAt("r:1,:2")), want: []string{`spec.gcsFaultToleranceOptions.redisAddress: Invalid value`}},
		"annotation and options (CL-079)": {given: demoCluster(redisAt("r:1"), annotations(rayv1.AnnotationFTEnabled, "false")),
			want: []string{`metadata.annotations[ray.io/ft-enabled]: Invalid value: "false": cannot be combined with spec.gcsFaultToleranceOptions`}},
		"an address without fault tolerance (CL-080)": {given: demoCluster(headEnv(envRedisAddress, "r:1")),
			want: []string{`spec.headGroupSpec.template.spec.containers[0].env: Invalid value: "RAY_REDIS_ADDRESS": has an effect only with`}},
		"the old ways beside the options": {
			given: demoCluster(redisAt("r:1"), headEnv(envRedisAddress, "r:1", envRedisPassword, "p"), annotations(rayv1.AnnotationExternalStorageNamespace, "n"),
				func(c *rayv1.RayCluster) {
					c.Spec.HeadGroupSpec.RayStartParams = map[string]string{paramRedisPassword: "p"}
				}),
			want: []string{"spec.headGroupSpec.rayStartParams[redis-password]", "spec.headGroupSpec.template.spec.containers[0].env: Invalid value: \"REDIS_PASSWORD\"",
				"spec.headGroupSpec.template.spec.containers[0].env: Invalid value: \"RAY_REDIS_ADDRESS\"", "metadata.annotations[ray.io/external-storage-namespace]"}},
		"a volume for Redis": {given: demoCluster(redisAt("r:1", func(o *rayv1.GcsFaultToleranceOptions) { o.Storage = &rayv1.GcsEmbeddedStorage{} })),
			want: []string{"spec.gcsFaultToleranceOptions.storage: Forbidden: is for the backend rocksdb"}},
		"a volume":                 {given: demoCluster(onVolume()), gate: gateOn},
		"a volume, with gate off":  {given: demoCluster(onVolume()), want: []string{`spec.gcsFaultToleranceOptions.backend: Invalid value: "rocksdb": needs the feature gate GCSFaultToleranceEmbeddedStorage`}},
		"Redis beside a volume":    {given: demoCluster(onVolume(), func(c *rayv1.RayCluster) { c.Spec.GcsFaultToleranceOptions.RedisAddress = "r:1" }), gate: gateOn, want: []string{"spec.gcsFaultToleranceOptions.redisAddress: Forbidden: is for the backend redis"}},
		"a given claim":            {given: demoCluster(onVolume(func(s *rayv1.GcsEmbeddedStorage) { s.ClaimName = "mine" })), gate: gateOn},
		"a given claim and a size": {given: demoCluster(onVolume(func(s *rayv1.GcsEmbeddedStorage) { s.ClaimName, s.Size = "mine", &size })), gate: gateOn, want: []string{"spec.gcsFaultToleranceOptions.storage.size: Forbidden: cannot be combined with claimName"}},
		"what stands in the way of the volume": {gate: gateOn,
			given: demoCluster(onVolume(), headEnv(envStorage, "x"), func(c *rayv1.RayCluster) {
				c.Spec.HeadGroupSpec.Template.Spec.Volumes = []corev1.Volume{{Name: "gcs-storage"}}
				headContainer(c).VolumeMounts = []corev1.VolumeMount{{Name: "other", MountPath: "/data/gcs"}}
			}),
			want: []string{"spec.headGroupSpec.template.spec.containers[0].env", "spec.headGroupSpec.template.spec.volumes[0].name",
				"spec.headGroupSpec.template.spec.containers[0].volumeMounts[0].mountPath"}},
	} {
		t.Run(name, func(t *testing.T) {
			settings := DefaultSettings()
			if tc.gate != nil {
				tc.gate(&settings)
			}
			var got []string
			for i, err := range Validate(tc.given, settings) {
				text := err.Error()
				if i < len(tc.want) && strings.HasPrefix(text, tc.want[i]) {
					text = tc.want[i]
				}
				got = append(got, text)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("errors (-want +got):\n%s", d)
			}
		})
	}
}

func TestAnAddressThatIsAcceptedHasHostAndPort(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		address := rapid.OneOf(rapid.String(), rapid.StringMatching(`(rediss?://)?[a-z.-]{0,5}:?[0-9]{0,6}`)).Draw(r, "address")
		if !isRedisAddress(address) {
			return
		}
		if u := redisURL(address); u.Hostname() == "" || u.Port() == "" {
			r.Errorf("%q is accepted, with host %q and port %q", address, u.Hostname(), u.Port())
		}
	})
}

func TestAPasswordInAnAddressIsNotShown(t *testing.T) {
	storage := rayv1.RedisStorage{Env: []corev1.EnvVar{{Name: envStorageNamespace, Value: "n"}, {Name: envRedisAddress, Value: "redis://u:geheim@r:6379"},
		{Name: envRedisPassword, Value: "geheim"}}}
	if got := describeStorage(storage); strings.Contains(got, "geheim") || !strings.Contains(got, "r:6379") {
		t.Errorf("described as %q", got)
	}
}

func TestWhatIsRecordedOfRedis(t *testing.T) {
	spaces := func(cluster *rayv1.RayCluster) []string {
		var names []string
		for _, s := range storages(cluster) {
			names = append(names, envNamed(s.Env, envStorageNamespace).Value)
		}
		return names
	}
	password := func(p string) func(*rayv1.GcsFaultToleranceOptions) {
		return func(o *rayv1.GcsFaultToleranceOptions) { o.RedisPassword = &rayv1.RedisCredential{Value: p} }
	}
	cluster := demoCluster(redisAt("r:1", password("old")))
	cluster.Status.RedisStorages = storages(cluster)
	redisAt("r:1", password("new"))(cluster)
	all := storages(cluster)
	if len(all) != 1 || envNamed(all[0].Env, envRedisPassword).Value != "new" {
		t.Errorf("after a change of the password alone %v are recorded", all)
	}
	for _, namespace := range []string{"a", "b", "c", "d", "e", "f"} {
		redisAt("r:1", func(o *rayv1.GcsFaultToleranceOptions) { o.ExternalStorageNamespace = namespace })(cluster)
		cluster.Status.RedisStorages = storages(cluster)
	}
	if d := cmp.Diff([]string{"b", "c", "d", "e", "f"}, spaces(cluster)); d != "" {
		t.Errorf("recorded namespaces (-want +got):\n%s", d)
	}
	cluster.Spec.GcsFaultToleranceOptions = nil
	if got := spaces(cluster); len(got) != 5 {
		t.Errorf("without fault tolerance now, %v are recorded", got)
	}
}

func TestNamesOfTheCleanUpJob(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		one := rapid.StringMatching(`[a-z][a-z0-9-]{0,51}[a-z0-9]`).Draw(r, "cluster")
		two := rapid.StringMatching(`[a-z][a-z0-9-]{0,51}[a-z0-9]`).Draw(r, "another cluster")
		first := cleanupJobName(&rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Name: one}})
		second := cleanupJobName(&rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Name: two}})
		if wrong := validation.IsDNS1123Label(first); len(wrong) > 0 {
			r.Errorf("the Job of %s would be called %s: %v", one, first, wrong)
		}
		if one != two && first == second {
			r.Errorf("the Jobs of %s and %s would both be called %s", one, two, first)
		}
	})
	if got := cleanupJobName(demoCluster()); got != "demo-redis-cleanup" {
		t.Errorf("the name is %s", got)
	}
}

func TestTheCleanUpPodIsSmall(t *testing.T) {
	cluster := demoCluster(redisAt("r:1"), headEnv("RAY_REDIS_CA_CERT", "/tls/ca"), func(c *rayv1.RayCluster) {
		spec := &c.Spec.HeadGroupSpec.Template.Spec
		spec.ServiceAccountName, spec.HostNetwork = "mine", true
		spec.NodeSelector = map[string]string{"gpu": "yes", corev1.LabelArchStable: "arm64"}
		spec.InitContainers = []corev1.Container{{Name: "slow"}}
		spec.Volumes = []corev1.Volume{
			{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls"}}},
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "d"}}}}
		headContainer(c).VolumeMounts = []corev1.VolumeMount{{Name: "tls", MountPath: "/tls"}, {Name: "data", MountPath: "/data"}}
		headContainer(c).Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Gi")}
		headContainer(c).LivenessProbe = &corev1.Probe{}
	})
	cluster.Annotations = map[string]string{rayv1.AnnotationRedisCleanupMemory: "512Mi", rayv1.AnnotationRedisCleanupCPU: "much"}
	cluster.Spec.HeadGroupSpec.Template.Labels = map[string]string{rayv1.LabelCreatedBy: "me", rayv1.LabelNodeType: "head", "team": "x"}
	job := cleanupJob(cluster, DefaultSettings(), storages(cluster), false)
	if job.Labels[rayv1.LabelCreatedBy] != rayv1.CreatedByOperator || job.Labels["team"] != "x" {
		t.Errorf("labels are %v", job.Labels)
	}
	pod := job.Spec.Template.Spec
	if pod.HostNetwork || pod.ServiceAccountName != "" || len(pod.InitContainers) > 0 || len(pod.Volumes) != 1 || pod.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("the Pod is %+v", pod)
	}
	if d := cmp.Diff(map[string]string{corev1.LabelArchStable: "arm64"}, pod.NodeSelector); d != "" {
		t.Errorf("node selector (-want +got):\n%s", d)
	}
	container := pod.Containers[0]
	if len(pod.Containers) != 1 || container.LivenessProbe != nil || len(container.VolumeMounts) != 1 {
		t.Errorf("containers are %+v", pod.Containers)
	}
	if d := cmp.Diff(map[string]string{envRedisAddress: "r:1", envStorageNamespace: "u-1", "RAY_REDIS_CA_CERT": "/tls/ca",
		"RAY_redis_db_connect_retries": "120", "RAY_redis_db_connect_wait_milliseconds": "500"}, envOf(container)); d != "" {
		t.Errorf("environment (-want +got):\n%s", d)
	}
	if got := container.Resources.Limits; got.Cpu().String() != "200m" || got.Memory().String() != "512Mi" {
		t.Errorf("limits are %v", got)
	}
	if ptr.Deref(job.Spec.BackoffLimit, 9) != 0 || ptr.Deref(job.Spec.ActiveDeadlineSeconds, 0) != 300 || job.Name != "demo-redis-cleanup" {
		t.Errorf("the Job is %+v", job.Spec)
	}
	if job.Labels[rayv1.LabelNodeType] != "redis-cleanup" || !maps.Equal(job.Labels, job.Spec.Template.Labels) {
		t.Errorf("labels are %v and %v", job.Labels, job.Spec.Template.Labels)
	}
}
