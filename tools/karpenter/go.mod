module github.com/sawhorse-io/sawhorse/tools/karpenter

go 1.26.1

require github.com/sawhorse-io/sawhorse v0.0.0

require (
	go.yaml.in/yaml/v2 v2.4.3 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)

replace github.com/sawhorse-io/sawhorse => ../..
