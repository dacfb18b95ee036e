// franz-go with a broker: franz ADDRESS CHECK... Prints the version of the library, and exits with 1
// at the first check that fails. With KAFKA_PASSWORD it connects by TLS and SASL: the mechanism
// is KAFKA_MECHANISM, the name KAFKA_USER, and the authority is in the file KAFKA_CA.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const (
	library = "github.com/twmb/franz-go"
	count   = 200
	wait    = 60 * time.Second
)

var address string

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func client(options ...kgo.Opt) *kgo.Client {
	options = append(options, kgo.SeedBrokers(address))
	if password := os.Getenv("KAFKA_PASSWORD"); password != "" {
		pem, err := os.ReadFile(os.Getenv("KAFKA_CA"))
		must(err)
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		user := os.Getenv("KAFKA_USER")
		mechanism := plain.Auth{User: user, Pass: password}.AsMechanism()
		if os.Getenv("KAFKA_MECHANISM") == "SCRAM-SHA-512" {
			mechanism = scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
		}
		options = append(options, kgo.DialTLSConfig(&tls.Config{RootCAs: roots}), kgo.SASL(mechanism))
	}
	made, err := kgo.NewClient(options...)
	must(err)
	return made
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func values(of string) []*kgo.Record {
	records := make([]*kgo.Record, count)
	for number := range records {
		records[number] = kgo.StringRecord(fmt.Sprintf("%s %d %s", of, number, strings.Repeat("x", 100)))
		records[number].Topic = "franz-" + of
	}
	return records
}

// read returns how many records a client gets before there are as many as wanted.
func read(ctx context.Context, consumer *kgo.Client, wanted int) map[string]int {
	found := map[string]int{}
	for total := 0; total < wanted; {
		fetches := consumer.PollFetches(ctx)
		must(fetches.Err0())
		fetches.EachRecord(func(record *kgo.Record) { found[string(record.Value)]++; total++ })
	}
	return found
}

func expect(found map[string]int, sent []*kgo.Record) {
	for _, record := range sent {
		if found[string(record.Value)] != 1 {
			panic(fmt.Sprintf("%q was read %d times", record.Value, found[string(record.Value)]))
		}
	}
	if len(found) != len(sent) {
		panic(fmt.Sprintf("%d of %d records", len(found), len(sent)))
	}
}

func produce(ctx context.Context, of string, options ...kgo.Opt) []*kgo.Record {
	producer := client(append(options, kgo.AllowAutoTopicCreation())...)
	defer producer.Close()
	sent := values(of)
	must(producer.ProduceSync(ctx, sent...).FirstErr())
	return sent
}

func roundTrip(ctx context.Context, of string, options ...kgo.Opt) {
	sent := produce(ctx, of, options...)
	consumer := client(kgo.ConsumeTopics("franz-" + of))
	defer consumer.Close()
	expect(read(ctx, consumer, count), sent)
}

func group(ctx context.Context, name string, options ...kgo.Opt) {
	sent := produce(ctx, name)
	member := func() *kgo.Client {
		return client(append(options, kgo.ConsumerGroup("franz-"+name), kgo.ConsumeTopics("franz-"+name),
			kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	}
	first := member()
	expect(read(ctx, first, count), sent)
	must(first.CommitUncommittedOffsets(ctx))
	must(first.LeaveGroupContext(ctx))
	first.Close()
	last := kgo.StringRecord("one more")
	last.Topic = "franz-" + name
	producer := client()
	must(producer.ProduceSync(ctx, last).FirstErr())
	producer.Close()
	second := member()
	defer second.Close()
	expect(read(ctx, second, 1), []*kgo.Record{last})
}

// transactions copies records with their offsets; every second transaction is aborted.
func transactions(ctx context.Context) {
	sent := produce(ctx, "in")
	session, err := kgo.NewGroupTransactSession(append(client().Opts(), kgo.TransactionalID("franz"),
		kgo.ConsumerGroup("franz-txn"), kgo.ConsumeTopics("franz-in"), kgo.AllowAutoTopicCreation(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	must(err)
	for copied, round := 0, 0; copied < count; round++ {
		fetches := session.PollRecords(ctx, count/4)
		must(fetches.Err0())
		must(session.Begin())
		records := fetches.Records()
		for _, record := range records {
			copy := kgo.StringRecord(string(record.Value))
			copy.Topic = "franz-out"
			session.Produce(ctx, copy, nil)
		}
		isCommitted, err := session.End(ctx, kgo.TransactionEndTry(round%2 == 1))
		must(err)
		if isCommitted {
			copied += len(records)
		}
	}
	session.Close()
	reader := client(kgo.ConsumeTopics("franz-out"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer reader.Close()
	expect(read(ctx, reader, count), sent)
}

func admin(ctx context.Context) {
	tools := kadm.NewClient(client())
	defer tools.Close()
	policy := "compact"
	_, err := tools.CreateTopic(ctx, 3, 1, map[string]*string{"cleanup.policy": &policy}, "franz-admin")
	must(err)
	topics, err := tools.ListTopics(ctx, "franz-admin")
	must(err)
	if partitions := len(topics["franz-admin"].Partitions); partitions != 3 {
		panic(fmt.Sprintf("%d partitions", partitions))
	}
	_, err = tools.DeleteTopic(ctx, "franz-admin")
	must(err)
	if _, err = tools.DeleteTopic(ctx, "franz-admin"); err != kerr.UnknownTopicOrPartition {
		panic(fmt.Sprintf("deleted twice: %v", err))
	}
}

func main() {
	address = os.Args[1]
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == library {
			fmt.Println(dependency.Version)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	for _, check := range os.Args[2:] {
		switch check {
		case "produce":
			roundTrip(ctx, "plain")
		case "login":
			roundTrip(ctx, "login-"+os.Getenv("KAFKA_MECHANISM"))
		case "codecs":
			for name, codec := range codecs {
				roundTrip(ctx, name, kgo.ProducerBatchCompression(codec))
			}
		case "group":
			group(ctx, "group")
		case "group-848":
			group(ctx, "group-848", kgo.ServerSideBalancer())
		case "transactions":
			transactions(ctx)
		case "admin":
			admin(ctx)
		default:
			panic("unknown check " + check)
		}
	}
}
