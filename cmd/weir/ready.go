package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"weir/cmd/weir/client"
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
			c, err := client.New(server, "", client.Config{})
			if err == nil {
				err = c.Ready(ctx)
			}
			if err != nil {
				return exitWith(exitFailed, fmt.Errorf("%s: %w", server, err))
			}
			return nil
		},
	}
	serverFlag(cmd, &server)
	return cmd
}
