package app

import (
	"context"

	"github.com/wasmgate/wasmgate/internal/scan/report"
)

// Scan scans what servers declare: see [report.Servers].
func (a *App) Scan(ctx context.Context, server string) (*report.Report, error) {
	return report.Servers(ctx, a.gateway, server)
}

// Scan returns what [App.Scan] does.
func (r *Remote) Scan(ctx context.Context, server string) (*report.Report, error) {
	s := new(report.Report)
	err := r.call(ctx, methodScan, scanRequest{server}, s)
	return s, err
}

type scanRequest struct {
	Server string `json:"server"`
}
