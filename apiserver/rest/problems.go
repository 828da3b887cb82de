// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/rest/oas"
)

// discriminator is the field that chooses the shape of a body that may have
// several.
const discriminator = "category"

// schema is as much of an OpenAPI schema as it takes to word what is wrong
// with a value. The generated decoder decides what is wrong; this only says it.
type schema struct {
	Ref           string             `json:"$ref"`
	Type          string             `json:"type"`
	Format        string             `json:"format"`
	Nullable      bool               `json:"nullable"`
	Enum          []string           `json:"enum"`
	MinLength     int                `json:"minLength"`
	MaxLength     int                `json:"maxLength"`
	Minimum       *float64           `json:"minimum"`
	Maximum       *float64           `json:"maximum"`
	MinItems      int                `json:"minItems"`
	MaxItems      int                `json:"maxItems"`
	Required      []string           `json:"required"`
	Properties    map[string]*schema `json:"properties"`
	Items         *schema            `json:"items"`
	Discriminator struct {
		Mapping map[string]string `json:"mapping"`
	} `json:"discriminator"`
}

// schemas are the named ones of the document, and those of the bodies that
// operations take, by operationId.
type schemas struct {
	named  map[string]*schema
	bodies map[string]*schema
}

// operation is as much of an operation as says what body it takes.
type operation struct {
	OperationID string `json:"operationId"`
	RequestBody struct {
		Content map[string]struct {
			Schema *schema `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
}

func readSchemas(document []byte) (*schemas, error) {
	var d struct {
		Components struct {
			Schemas map[string]*schema `json:"schemas"`
		} `json:"components"`
		Paths map[string]struct {
			Post operation `json:"post"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	s := &schemas{named: d.Components.Schemas, bodies: map[string]*schema{}}
	for path, item := range d.Paths {
		body := item.Post.RequestBody.Content["application/json"].Schema
		if body == nil {
			continue
		}
		if s.bodies[item.Post.OperationID] = s.resolve(body); s.bodies[item.Post.OperationID] == nil {
			return nil, fmt.Errorf("the OpenAPI document does not have the schema %s, which POST %s takes", body.Ref, path)
		}
	}
	return s, nil
}

// wordBody says what is wrong with a body that an operation refused.
func (s *schemas) wordBody(operationID string, raw []byte) string {
	if len(raw) == 0 {
		return "the body is empty; send a JSON object"
	}
	if problem := checkJSON(raw); problem != "" {
		return problem
	}
	value, problem := parse(raw)
	if problem != "" {
		return problem
	}
	object, ok := value.(map[string]any)
	if !ok {
		return "the body must be a JSON object"
	}
	shape := s.bodies[operationID]
	if len(shape.Discriminator.Mapping) > 0 {
		if shape, problem = s.variant(shape, object); problem != "" {
			return problem
		}
	}
	if problems := s.check(shape, "", object); len(problems) > 0 {
		return bridge.JoinProblems(problems)
	}
	return "the body does not fit the description at /openapi.json"
}

// parse reads a body that is to be one JSON value.
func parse(raw []byte) (value any, problem string) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, fmt.Sprintf("the body is not valid JSON: %s at byte %d", syntax, syntax.Offset)
		}
		return nil, "the body is not valid JSON: it ends too early"
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, "the body goes on after its JSON object; send one object only"
	}
	return value, ""
}

// variant finds the schema that the discriminator chooses.
func (s *schemas) variant(of *schema, object map[string]any) (chosen *schema, problem string) {
	mapping := of.Discriminator.Mapping
	known := strings.Join(slices.Sorted(maps.Keys(mapping)), ", ")
	value, present := object[discriminator]
	if !present {
		return nil, fmt.Sprintf("%s: is missing; it is one of %s", discriminator, known)
	}
	category, ok := value.(string)
	if !ok {
		return nil, fmt.Sprintf("%s: must be a string, one of %s", discriminator, known)
	}
	if ref, ok := mapping[category]; ok {
		return s.resolve(&schema{Ref: ref}), ""
	}
	return nil, fmt.Sprintf("%s: must be one of %s", discriminator, known)
}

func (s *schemas) resolve(of *schema) *schema {
	if of.Ref == "" {
		return of
	}
	return s.named[of.Ref[strings.LastIndexByte(of.Ref, '/')+1:]]
}

// check lists what is wrong with a value, each problem with its path.
func (s *schemas) check(of *schema, path string, value any) []string {
	of = s.resolve(of)
	if of.Type == "" || (value == nil && of.Nullable) {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		if of.Type == "object" {
			return s.checkObject(of, path, v)
		}
	case []any:
		if of.Type == "array" {
			return s.checkArray(of, path, v)
		}
	case string:
		if of.Type == "string" {
			return checkString(of, path, v)
		}
	case bool:
		if of.Type == "boolean" {
			return nil
		}
	case json.Number:
		if of.Type == "number" || of.Type == "integer" {
			return checkNumber(of, path, v)
		}
	}
	word := "must be " + article(of.Type)
	if of.Nullable {
		word += " or null"
	}
	return []string{path + ": " + word}
}

func (s *schemas) checkObject(of *schema, path string, object map[string]any) []string {
	prefix := path
	if prefix != "" {
		prefix += "."
	}
	var problems []string
	for _, name := range of.Required {
		if _, ok := object[name]; !ok {
			problems = append(problems, prefix+name+": is missing")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		if value, ok := object[name]; ok {
			problems = append(problems, s.check(of.Properties[name], prefix+name, value)...)
		}
	}
	return problems
}

func (s *schemas) checkArray(of *schema, path string, array []any) []string {
	var problems []string
	if len(array) < of.MinItems {
		problems = append(problems, fmt.Sprintf("%s: must have at least %d item", path, of.MinItems))
	}
	if of.MaxItems > 0 && len(array) > of.MaxItems {
		problems = append(problems, fmt.Sprintf("%s: must have at most %d items", path, of.MaxItems))
	}
	for i, value := range array {
		problems = append(problems, s.check(of.Items, fmt.Sprintf("%s[%d]", path, i), value)...)
	}
	return problems
}

// checkNumber takes of an integer only what the decoder takes: digits, without
// a fraction or an exponent.
func checkNumber(of *schema, path string, value json.Number) []string {
	number, err := value.Float64()
	if of.Type == "integer" {
		_, err = value.Int64()
	}
	switch {
	case err != nil && of.Type == "integer":
		return []string{path + ": must be a whole number, written in digits, below 2^63"}
	case err != nil:
		return []string{path + ": is a larger number than can be read"}
	case of.Minimum != nil && number < *of.Minimum:
		return []string{fmt.Sprintf("%s: must be at least %s", path, plain(*of.Minimum))}
	case of.Maximum != nil && number > *of.Maximum:
		return []string{fmt.Sprintf("%s: must be at most %s", path, plain(*of.Maximum))}
	default:
		return nil
	}
}

func plain(number float64) string { return strconv.FormatFloat(number, 'f', -1, 64) }

func checkString(of *schema, path, value string) []string {
	length := utf8.RuneCountInString(value)
	switch {
	case len(of.Enum) > 0 && !slices.Contains(of.Enum, value):
		return []string{path + ": must be one of " + strings.Join(of.Enum, ", ")}
	case length < of.MinLength:
		return []string{path + ": must not be empty"}
	case of.MaxLength > 0 && length > of.MaxLength:
		return []string{fmt.Sprintf("%s: must have at most %d characters", path, of.MaxLength)}
	case of.Format == "date-time":
		if _, err := time.Parse(time.RFC3339, value); err != nil {
			return []string{path + ": must be a time in RFC 3339 form, such as 2026-12-01T09:00:00Z"}
		}
	}
	return nil
}

func article(of string) string {
	if strings.ContainsAny(of[:1], "aeiou") {
		return "an " + of
	}
	return "a " + of
}

// wordParam says what a query parameter must be.
func wordParam(name string) string {
	switch name {
	case "platform":
		return oneOf(name, oas.Platform("").AllValues())
	case "status":
		return oneOf(name, oas.PostListStatus("").AllValues())
	case "Idempotency-Key":
		return name + ": must have 1 to 255 characters"
	default:
		return name + ": must be a whole number"
	}
}

func oneOf[S ~string](name string, values []S) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return name + ": must be one of " + strings.Join(words, ", ")
}
