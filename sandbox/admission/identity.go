package admission

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// The variables from which the AWS SDK in a container gets its credentials.
const (
	// CredentialsURL is the URL of Pod Identity's agent, TokenFile the file with the token for it.
	CredentialsURL = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
	TokenFile      = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"
	// RoleARN is the role whose credentials STS issues for the token in WebTokenFile (IRSA).
	RoleARN      = "AWS_ROLE_ARN"
	WebTokenFile = "AWS_WEB_IDENTITY_TOKEN_FILE"
)

// identity is one way to get credentials: the variables, and the token that is mounted.
type identity struct {
	variables []corev1.EnvVar
	volume    string
	folder    string // of the token
	file      string
	audience  string
}

var podIdentity = identity{
	variables: []corev1.EnvVar{
		{Name: "AWS_STS_REGIONAL_ENDPOINTS", Value: "regional"},
		{Name: CredentialsURL, Value: "http://169.254.170.23/v1/credentials"},
		{Name: TokenFile, Value: "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount/eks-pod-identity-token"},
	},
	volume: "eks-pod-identity-token", folder: "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount", file: "eks-pod-identity-token",
	audience: "pods.eks.amazonaws.com",
}

func webIdentity(role string) *identity {
	const folder = "/var/run/secrets/eks.amazonaws.com/serviceaccount"
	return &identity{
		variables: []corev1.EnvVar{
			{Name: "AWS_STS_REGIONAL_ENDPOINTS", Value: "regional"},
			{Name: RoleARN, Value: role},
			{Name: WebTokenFile, Value: path.Join(folder, "token")},
		},
		volume: "aws-iam-token", folder: folder, file: "token", audience: "sts.amazonaws.com",
	}
}

// tokenSeconds is how long a mounted token is valid.
const tokenSeconds = 86_400

// inject adds the missing variables to each container, and mounts the token.
func (i *identity) inject(spec *corev1.PodSpec, region string) {
	variables := append(slices.Clone(i.variables), corev1.EnvVar{Name: "AWS_DEFAULT_REGION", Value: region},
		corev1.EnvVar{Name: "AWS_REGION", Value: region})
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for n := range containers {
			container := &containers[n]
			for _, variable := range variables {
				if !slices.ContainsFunc(container.Env, func(is corev1.EnvVar) bool { return is.Name == variable.Name }) {
					container.Env = append(container.Env, variable)
				}
			}
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: i.volume, MountPath: i.folder, ReadOnly: true})
		}
	}
	token := &corev1.ServiceAccountTokenProjection{Audience: i.audience, ExpirationSeconds: new(int64(tokenSeconds)), Path: i.file}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: i.volume, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: token}}},
	}})
}
