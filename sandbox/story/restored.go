package story

import "time"

// Restored deploys the stack with a table that was restored from point-in-time recovery, as docs/operate.md describes: what
// was written after that moment is not in it, neither in its records nor in what it says of the parameter change.
func Restored(s *Script) {
	const restored = "sawhorse-restored"
	var former string
	s.Chapter("A table of the past", func() {
		stack(s, "deploy --require-approval never -c removal=retain")
		former = s.table()
		s.Type("aws dynamodb restore-table-to-point-in-time --use-latest-restorable-time --query TableDescription.TableStatus " +
			"--source-table-name " + former + " --target-table-name " + restored)
		s.Say("The emulator restores the present only. So what happens from here on is what the restored table does not have.")
		s.Change(map[string]string{"karpenter_cpu_limit": "150"})
		s.Reconciled()
		s.Reconciled(s.Put("karpenter_cpu_limit", "160"))
		s.Check("NodePool's CPU limit", cpuLimit, "160")
	})

	s.Chapter("Held, and deployed with it", func() {
		s.Type("aws ssm put-parameter --type String --name /sawhorse/hold " + `--value '{"racks": ["*"], "reason": "the table is restored"}'`)
		s.Until("executions that run", "aws stepfunctions list-executions --status-filter RUNNING --query 'length(executions)' "+
			"--output text --state-machine-arn "+machine, "0", time.Minute)
		s.Type("aws dynamodb update-time-to-live --table-name " + restored +
			" --time-to-live-specification Enabled=true,AttributeName=ttl --query TimeToLiveSpecification.Enabled")
		s.Type("aws dynamodb update-continuous-backups --table-name " + restored +
			" --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true --query ContinuousBackupsDescription.ContinuousBackupsStatus")
		s.Type("aws dynamodb update-table --table-name " + restored + " --deletion-protection-enabled --query TableDescription.TableStatus")
		s.Say("The table does not know that this change was made, and would have it judged again, and refused for the later write.")
		s.Type("aws ssm delete-parameter --name /sawhorse/racks/demo/change")
		stack(s, "deploy --require-approval never -c removal=retain -c table="+restored)
		s.Equal("the stack's table", s.table(), restored)
		s.Contains("the former one stays", tables, former)
	})

	s.Chapter("Let go", func() {
		s.Request("full")
		s.Paused()
		s.Says("the rack is held (the table is restored)")
		s.Type("sawhorse status demo")
		s.Type("aws ssm delete-parameter --name /sawhorse/hold")
		s.FullPass()
		s.State("Reconciled")
		s.Check("NodePool's CPU limit is that of the last write", cpuLimit, "160")
		s.Check("and so is the parameter", "aws ssm get-parameter --name /sawhorse/racks/demo/params/karpenter_cpu_limit "+
			"--query Parameter.Value --output text", "160")
		off(s)
		s.Say("The table has what was there before Karpenter.")
		withoutKarpenter(s)
	})
}
