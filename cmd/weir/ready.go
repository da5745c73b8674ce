package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// newReady is the health check of the container image, which has no curl.
func newReady() *cobra.Command {
	var server string
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "Exit 0 if the gate is ready, else 1",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/readyz", nil)
			if err != nil {
				return exitWith(exitUsage, err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return exitWith(exitFailed, err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return exitWith(exitFailed, fmt.Errorf("the gate is not ready: %s/readyz answers %d", server, resp.StatusCode))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&server, "server", "http://127.0.0.1:8080", "address of the gate")
	return cmd
}
