package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/spf13/cobra"

	"github.com/sawhorse-io/sawhorse/internal/doctor"
	"github.com/sawhorse-io/sawhorse/internal/doctor/observe"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
)

func doctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "doctor RACK", Short: "Look for problems that would impede Karpenter", Args: exactly("RACK"), ValidArgsFunction: completeRack,
		Long: `Examines the rack's cluster and account, and changes nothing. Run it before Karpenter is turned on, and whenever something is
odd. Each finding says what, why it matters and what to do. A check that could not be made is a finding too.

Exit codes: 0 no check fails, 1 a check fails, 2 wrong use, 3 no check fails, but one could not be made, or there are no
credentials.` + aboutCloud + `

It calls the cluster's API server with the same credentials, as ` + "`aws eks get-token`" + ` makes them. It reads no kubeconfig, so
kubectl's current context does not matter.`,
	}
	format := outputFlag(c, "text", "json")
	kubernetes := c.Flags().String("kubernetes", "", "also tell whether the rack is fit for this version of Kubernetes, such as 1.36")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *kubernetes != "" && !doctor.KubernetesMinor(*kubernetes) {
			return misused("--kubernetes is %q; allowed is a minor version of Kubernetes; write, for example, 1.36", *kubernetes)
		}
		report, err := examine(c.Context(), args[0], *kubernetes)
		if err != nil {
			return looking(err)
		}
		return conclude(report, *format)
	}
	return c
}

// conclude prints a report. It returns the error for the exit code: refused if a check failed, or else undecided if a
// check could not be made.
func conclude(report doctor.Report, format string) (err error) {
	if format == "json" {
		err = printJSON(report)
	} else {
		err = printReport(os.Stdout, report)
	}
	switch {
	case err != nil:
		return err
	case report.Count(doctor.Fails) > 0:
		return refused("")
	case report.Count(doctor.Unknown) > 0:
		return undecided("")
	}
	return nil
}

func examine(ctx context.Context, rack, kubernetes string) (doctor.Report, error) {
	aws, err := account(ctx)
	if err != nil {
		return doctor.Report{}, err
	}
	clusters := eks.NewFromConfig(aws)
	observed := observe.Read(ctx, rack, kubernetes, paths(), observe.Clients{
		Parameters: ssm.NewFromConfig(aws, func(o *ssm.Options) { o.RetryMaxAttempts = patientAttempts }), STS: sts.NewFromConfig(aws),
		EKS: clusters, EC2: ec2.NewFromConfig(aws),
		IAM: iam.NewFromConfig(aws), KMS: kms.NewFromConfig(aws), SQS: sqs.NewFromConfig(aws),
		Quotas: servicequotas.NewFromConfig(aws), Rules: eventbridge.NewFromConfig(aws),
		Dial: k8s.Dial(aws, clusters),
	})
	return doctor.Examine(observed), nil
}

// printReport prints a report as text. Findings that differ only in the check are printed as one, because one cause can
// prevent many checks.
func printReport(w io.Writer, r doctor.Report) error {
	var out strings.Builder
	for rest := r.Findings; len(rest) > 0; {
		f := rest[0]
		same := func(other doctor.Finding) bool { return other.What == f.What && other.Do == f.Do }
		var checks []string
		for _, each := range rest {
			if same(each) {
				checks = append(checks, each.Check)
			}
		}
		rest = slices.DeleteFunc(slices.Clone(rest), same)
		fmt.Fprintf(&out, "%-8s %s: %s\n", f.Severity, strings.Join(checks, ", "), f.What)
		if len(checks) == 1 {
			fmt.Fprintf(&out, "   why   %s\n", f.Why)
		}
		fmt.Fprintf(&out, "   do    %s\n", f.Do)
		for _, c := range f.Commands {
			fmt.Fprintf(&out, "         $ %s\n", c)
		}
	}
	if len(r.Good) > 0 {
		fmt.Fprintf(&out, "good     %s\n", strings.Join(r.Good, ", "))
	}
	fmt.Fprintf(&out, "Rack %s, cluster %s: %d fail, %d warn, %d to know, %d unknown\n", r.Rack, r.Cluster,
		r.Count(doctor.Fails), r.Count(doctor.Warns), r.Count(doctor.Info), r.Count(doctor.Unknown))
	_, err := io.WriteString(w, out.String())
	return err
}
