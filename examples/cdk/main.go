// Command cdk is an AWS CDK app with the settings of a rack. In the folder examples: cdk --app 'go run ./cdk' deploy
package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsssm"
	"github.com/aws/jsii-runtime-go"
)

const rack = "demo"

func main() {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, jsii.String("Rack-"+rack), &awscdk.StackProps{Synthesizer: awscdk.NewCliCredentialsStackSynthesizer(nil)})
	settings := map[string]any{"karpenter_cpu_limit": "120", "karpenter_node_labels": "team=core"}
	for name, value := range settings {
		if given := app.Node().TryGetContext(jsii.String(name)); given != nil { // cdk deploy -c karpenter_cpu_limit=140
			value = given
		}
		awsssm.NewStringParameter(stack, jsii.String(name), &awsssm.StringParameterProps{
			ParameterName: jsii.String("/sawhorse/racks/" + rack + "/params/" + name), StringValue: jsii.String(value.(string)),
		})
	}
	app.Synth(nil)
}
