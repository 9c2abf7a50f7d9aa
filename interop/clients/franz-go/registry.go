// The schema registry's API with the client of franz-go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"

	"github.com/twmb/franz-go/pkg/sr"
)

const (
	first  = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}`
	second = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"note","type":"string","default":""}]}`
	third  = `{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}`
	user   = `{"type":"record","name":"Basket","fields":[{"name":"order","type":"Order"}]}`
	proto  = `syntax = "proto3"; message Order { int64 id = 1; }`
)

type order struct {
	ID int64 `json:"id"`
}

// registry does what the client can, and prints what it saw.
func registry(ctx context.Context, args []string) {
	client := must(sr.NewClient(sr.URLs(args[0])))
	subject, report := args[1], map[string]any{}
	made := must(client.CreateSchema(ctx, subject, sr.Schema{Schema: first}))
	again := must(client.CreateSchema(ctx, subject, sr.Schema{Schema: first}))
	report["same_id"] = made.ID == again.ID
	must(client.CreateSchema(ctx, subject, sr.Schema{Schema: second}))
	report["versions"] = must(client.SubjectVersions(ctx, subject))
	report["is_listed"] = slices.Contains(must(client.Subjects(ctx)), subject)
	report["by_id"] = must(client.SchemaByID(ctx, made.ID)).Schema == first
	report["found"] = must(client.LookupSchema(ctx, subject, sr.Schema{Schema: second})).Version
	checked := must(client.CheckCompatibility(ctx, subject, -1, sr.Schema{Schema: third}))
	report["is_compatible"] = checked.Is
	_, refused := client.CreateSchema(ctx, subject, sr.Schema{Schema: third})
	report["refused"] = codeOf(refused)
	_, missing := client.SchemaByVersion(ctx, subject, 9)
	report["missing"] = codeOf(missing)

	references := []sr.SchemaReference{{Name: "Order", Subject: subject, Version: 1}}
	basket := must(client.CreateSchema(ctx, subject+"-basket", sr.Schema{Schema: user, References: references}))
	report["referenced"] = len(must(client.SchemaReferences(ctx, subject, 1))) > 0 && basket.ID > 0
	must(client.CreateSchema(ctx, subject+"-proto", sr.Schema{Schema: proto, Type: sr.TypeProtobuf}))
	must(client.CreateSchema(ctx, subject+"-json", sr.Schema{Schema: `{"type":"object"}`, Type: sr.TypeJSON}))
	report["types"] = must(client.SupportedTypes(ctx))

	level := client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFull}, subject)[0]
	check(level.Err)
	report["level"] = client.Compatibility(ctx, subject)[0].Level.String()
	mode := client.SetMode(ctx, sr.ModeReadOnly, subject)[0]
	check(mode.Err)
	report["mode"] = client.Mode(ctx, subject)[0].Mode.String()
	client.ResetMode(ctx, subject)

	serde := sr.NewSerde()
	serde.Register(made.ID, order{}, sr.EncodeFn(json.Marshal), sr.DecodeFn(json.Unmarshal))
	var read order
	check(serde.Decode(must(serde.Encode(order{ID: 7})), &read))
	report["read"] = read.ID

	must(client.DeleteSubject(ctx, subject+"-basket", sr.SoftDelete))
	must(client.DeleteSubject(ctx, subject+"-basket", sr.HardDelete))
	report["deleted"] = must(client.DeleteSubject(ctx, subject, sr.SoftDelete))
	check(json.NewEncoder(os.Stdout).Encode(report))
}

func codeOf(err error) int {
	var answered *sr.ResponseError
	if errors.As(err, &answered) {
		return answered.ErrorCode
	}
	return 0
}
