// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/hack/local/processes"
	"github.com/herald-social/herald/sandbox"
)

// demoPlatforms returns the sandbox's platforms; each has a demo account.
func demoPlatforms() []v1alpha1.Platform {
	accounts := sandbox.DemoAccounts()
	platforms := make([]v1alpha1.Platform, len(accounts))
	for i, account := range accounts {
		platforms[i] = v1alpha1.Platform(account.Platform)
	}
	return platforms
}

// granter returns a Grant. It sends a PUT without changes to the sandbox, which issues new tokens to an account that
// has lost its own. The Bluesky account is on Bluesky's own server if that is installed.
func granter(setup *processes.Setup) cluster.Grant {
	client, sandboxURL := &http.Client{}, setup.URL(processes.Sandbox)
	return func(ctx context.Context, platform v1alpha1.Platform) (account cluster.Account, err error) {
		if platform == v1alpha1.PlatformBluesky && setup.Bluesky != "" {
			account.ID, account.AccessToken, err = setup.BlueskyAccount()
			return account, err
		}
		id := ""
		for _, demo := range sandbox.DemoAccounts() {
			if demo.Platform == string(platform) {
				id = demo.ID
			}
		}
		url := fmt.Sprintf("%s/_control/accounts/%s/%s", sandboxURL, platform, id)
		if account, err = putAccount(ctx, client, url); err != nil {
			return account, fmt.Errorf("ask the sandbox for tokens of its demo account on %s: %w", platform, err)
		}
		return account, nil
	}
}

func putAccount(ctx context.Context, client *http.Client, url string) (cluster.Account, error) {
	var answer struct {
		Data cluster.Account `json:"data"`
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader("{}"))
	if err != nil {
		return answer.Data, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return answer.Data, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated {
		return answer.Data, fmt.Errorf("%s answers %s", url, response.Status)
	}
	err = json.NewDecoder(response.Body).Decode(&answer)
	return answer.Data, err
}
