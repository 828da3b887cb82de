// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/sandbox"
)

// demoPlatforms are the platforms that the sandbox simulates, each with a demo account.
func demoPlatforms() []v1alpha1.Platform {
	accounts := sandbox.DemoAccounts()
	platforms := make([]v1alpha1.Platform, len(accounts))
	for i, account := range accounts {
		platforms[i] = v1alpha1.Platform(account.Platform)
	}
	return platforms
}

// granter returns the demo account of a platform with tokens that are in force. It asks the sandbox by PUT without a
// change: an account that has lost its tokens is given new ones then.
func granter(sandboxURL string) cluster.Grant {
	client := plainClient()
	return func(ctx context.Context, platform v1alpha1.Platform) (cluster.Account, error) {
		id := ""
		for _, account := range sandbox.DemoAccounts() {
			if account.Platform == string(platform) {
				id = account.ID
			}
		}
		url := fmt.Sprintf("%s/_control/accounts/%s/%s", sandboxURL, platform, id)
		account, err := putAccount(ctx, client, url)
		if err != nil {
			return cluster.Account{}, fmt.Errorf("ask the sandbox for tokens of its demo account on %s: %w", platform, err)
		}
		return account, nil
	}
}

func putAccount(ctx context.Context, client *http.Client, url string) (cluster.Account, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader("{}"))
	if err != nil {
		return cluster.Account{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return cluster.Account{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated {
		return cluster.Account{}, fmt.Errorf("%s answers %s", url, response.Status)
	}
	var answer struct {
		Data struct {
			ID           string   `json:"id"`
			AccessToken  string   `json:"access_token"`
			RefreshToken string   `json:"refresh_token"`
			ExpiresAt    string   `json:"expires_at"`
			Scopes       []string `json:"scopes"`
		} `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return cluster.Account{}, err
	}
	d := answer.Data
	account := cluster.Account{ID: d.ID, AccessToken: d.AccessToken, RefreshToken: d.RefreshToken, Scopes: strings.Join(d.Scopes, " ")}
	if d.ExpiresAt != "" {
		if account.ExpiresAt, err = time.Parse(time.RFC3339, d.ExpiresAt); err != nil {
			return cluster.Account{}, err
		}
	}
	return account, nil
}
