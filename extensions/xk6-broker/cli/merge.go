package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.k6.io/k6/v2/cmd/state"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/report"
)

func newMerge(gs *state.GlobalState) *cobra.Command {
	var (
		out       string
		overwrite bool
	)
	c := &cobra.Command{
		Use:   "merge DIR DIR... -o OUT",
		Short: "Join the results of the processes of one test into one",
		Long: "Joins what several k6 processes of one test left behind, one folder each: those that were given the same BROKER_RUN.\n" +
			"Distributions, counts and the account of every message are exact.",
		Example: "  BROKER_RUN=nightly ./k6 run --execution-segment 0:1/2 script.js     # on one machine\n" +
			"  BROKER_RUN=nightly ./k6 run --execution-segment 1/2:1 script.js     # on the other\n" +
			"  k6 x broker merge results/one results/two -o results/nightly",
		Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			folder := report.Folder{Dir: filepath.Dir(out), Name: filepath.Base(out), Overwrite: overwrite}
			if err := folder.Check(); err != nil {
				return err
			}
			parts := make([]load.Part, len(args))
			for i, dir := range args {
				progress(gs, i, len(args), dir)
				var err error
				if parts[i].Result, err = report.Read(dir); err != nil {
					return err
				}
				if parts[i].Ledger, err = report.ReadLedger(dir); err != nil {
					return err
				}
			}
			merged, err := load.Merge(parts)
			if err != nil {
				return err
			}
			merged.Name = folder.Name
			if err := folder.Write(merged, nil, nil); err != nil {
				return err
			}
			if err := report.Text(gs.Stdout, merged); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(gs.Stdout, "  results: %s\n", filepath.Join(folder.Path(), report.PageFile))
			return nil
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "", "the folder of the joined result")
	c.Flags().BoolVar(&overwrite, "overwrite", false, "replace the results in the folder if there are any")
	_ = c.MarkFlagRequired("out") // the flag is there
	return c
}
