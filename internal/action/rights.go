package action

// The rights that the operator needs are those of the actions, and the reads that plans are made from. hack/generate.sh
// writes them into the chart (charts/heliostat/files/rules.yaml). What only useKubernetesProxy needs stands in the chart,
// because it is granted with that option only.
//
// +kubebuilder:rbac:groups="",resources=pods,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=create;get;list;patch;watch
// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create;delete;get;list;watch
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=create;delete;get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=create;delete;get;list;watch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=gateways;httproutes,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=ray.io,resources=rayclusters,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=ray.io,resources=rayjobs,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=ray.io,resources=raycronjobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=ray.io,resources=rayservices,verbs=get;list;patch;watch
// +kubebuilder:rbac:groups=ray.io,resources=rayclusters/status;raycronjobs/status;rayjobs/status;rayservices/status,verbs=patch
// +kubebuilder:rbac:groups=ray.io,resources=rayclusters/finalizers;raycronjobs/finalizers;rayjobs/finalizers;rayservices/finalizers,verbs=update
