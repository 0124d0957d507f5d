// Command cdk writes the CloudFormation template of Sawhorse's stack for the CDK CLI (cdk.json names it as the app).
// Context values configure a deployment; settings.go lists them.
package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

func main() {
	err := synth()
	jsii.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func synth() error {
	app := awscdk.NewApp(&awscdk.AppProps{AnalyticsReporting: jsii.Bool(false)})
	settings, err := readSettings(func(key string) any { return app.Node().TryGetContext(jsii.String(key)) })
	if err != nil {
		return err
	}
	if err := settings.checkZips(); err != nil {
		return err
	}
	newStack(app, "Sawhorse", settings)
	app.Synth(nil)
	return nil
}
