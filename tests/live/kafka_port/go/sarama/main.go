// sarama with a broker: sarama ADDRESS CHECK... Prints the version of the library, and exits with 1
// at the first check that fails. With KAFKA_PASSWORD it connects by TLS and SASL: the mechanism
// is KAFKA_MECHANISM, the name KAFKA_USER, and the authority is in the file KAFKA_CA.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

const (
	library = "github.com/IBM/sarama"
	count   = 200
	wait    = 60 * time.Second
)

var address []string

var codecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// login is a conversation by SCRAM, which sarama leaves to others.
type login struct{ *scram.ClientConversation }

func (l *login) Begin(user, password, authorization string) error {
	client, err := scram.SHA512.NewClient(user, password, authorization)
	if err == nil {
		l.ClientConversation = client.NewConversation()
	}
	return err
}

func config() *sarama.Config {
	made := sarama.NewConfig()
	made.Version = sarama.V4_1_0_0
	made.Producer.RequiredAcks = sarama.WaitForAll
	made.Producer.Idempotent = true
	made.Net.MaxOpenRequests = 1
	made.Producer.Return.Successes = true
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	made.Consumer.Offsets.AutoCommit.Enable = false
	made.Consumer.IsolationLevel = sarama.ReadCommitted
	// A commit waits behind the long poll of a fetch: both use one connection.
	made.Consumer.MaxWaitTime = 10 * time.Millisecond
	if password := os.Getenv("KAFKA_PASSWORD"); password != "" {
		pem, err := os.ReadFile(os.Getenv("KAFKA_CA"))
		must(err)
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		made.Net.TLS.Enable = true
		made.Net.TLS.Config = &tls.Config{RootCAs: roots}
		made.Net.SASL.Enable = true
		made.Net.SASL.User = os.Getenv("KAFKA_USER")
		made.Net.SASL.Password = password
		if os.Getenv("KAFKA_MECHANISM") == sarama.SASLTypeSCRAMSHA512 {
			made.Net.SASL.Mechanism = sarama.SASLTypeSCRAMSHA512
			made.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &login{} }
		}
	}
	return made
}

func produce(of string, settings *sarama.Config) []string {
	producer, err := sarama.NewSyncProducer(address, settings)
	must(err)
	defer func() { must(producer.Close()) }()
	sent := make([]string, count)
	messages := make([]*sarama.ProducerMessage, count)
	for number := range sent {
		sent[number] = fmt.Sprintf("%s %d %s", of, number, strings.Repeat("x", 100))
		messages[number] = &sarama.ProducerMessage{
			Topic: "sarama-" + of, Value: sarama.StringEncoder(sent[number]),
		}
	}
	must(producer.SendMessages(messages))
	return sent
}

func expect(found []string, sent []string) {
	if strings.Join(found, "\n") != strings.Join(sent, "\n") {
		panic(fmt.Sprintf("read %d records, others than the %d that were sent", len(found), len(sent)))
	}
}

func read(topic string, wanted int) []string {
	consumer, err := sarama.NewConsumer(address, config())
	must(err)
	defer func() { must(consumer.Close()) }()
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	must(err)
	defer func() { must(partition.Close()) }()
	var found []string
	for len(found) < wanted {
		select {
		case message := <-partition.Messages():
			found = append(found, string(message.Value))
		case <-time.After(wait):
			panic(fmt.Sprintf("%s has only %d of %d records", topic, len(found), wanted))
		}
	}
	return found
}

// member reads as many records as are wanted, marks them and leaves.
type member struct {
	wanted int
	found  []string
	done   context.CancelFunc
	take   func(sarama.ConsumerGroupSession, *sarama.ConsumerMessage)
}

func (*member) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		m.found = append(m.found, string(message.Value))
		m.take(session, message)
		if len(m.found) == m.wanted {
			m.done()
			return nil
		}
	}
	return nil
}

func join(name string, topic string, wanted int,
	take func(sarama.ConsumerGroupSession, *sarama.ConsumerMessage)) []string {
	joined, err := sarama.NewConsumerGroup(address, name, config())
	must(err)
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	reader := &member{wanted: wanted, done: cancel, take: take}
	for ctx.Err() == nil {
		must(joined.Consume(ctx, []string{topic}, reader))
	}
	must(joined.Close())
	return reader.found
}

func commit(session sarama.ConsumerGroupSession, message *sarama.ConsumerMessage) {
	session.MarkMessage(message, "")
	session.Commit()
}

func group() {
	sent := produce("group", config())
	half := count / 2
	expect(join("sarama", "sarama-group", half, commit), sent[:half])
	expect(join("sarama", "sarama-group", half, commit), sent[half:])
}

// transactions copies records with their offsets; every second transaction is aborted and repeated.
func transactions() {
	sent := produce("in", config())
	settings := config()
	settings.Producer.Transaction.ID = "sarama"
	producer, err := sarama.NewAsyncProducer(address, settings)
	must(err)
	copied := func(_ sarama.ConsumerGroupSession, message *sarama.ConsumerMessage) {
		for _, isCommitted := range []bool{false, true} {
			must(producer.BeginTxn())
			producer.Input() <- &sarama.ProducerMessage{
				Topic: "sarama-out", Value: sarama.ByteEncoder(message.Value),
			}
			<-producer.Successes()
			must(producer.AddMessageToTxn(message, "sarama-txn", nil))
			if isCommitted {
				must(producer.CommitTxn())
			} else {
				must(producer.AbortTxn())
			}
		}
	}
	const some = 20
	join("sarama-txn", "sarama-in", some, copied)
	must(producer.Close())
	expect(read("sarama-out", some), sent[:some])
	expect(join("sarama-txn", "sarama-in", count-some, commit), sent[some:])
}

func admin() {
	tools, err := sarama.NewClusterAdmin(address, config())
	must(err)
	defer func() { must(tools.Close()) }()
	policy := "compact"
	must(tools.CreateTopic("sarama-admin", &sarama.TopicDetail{
		NumPartitions: 3, ReplicationFactor: 1,
		ConfigEntries: map[string]*string{"cleanup.policy": &policy},
	}, false))
	described, err := tools.DescribeTopics([]string{"sarama-admin"})
	must(err)
	if partitions := len(described[0].Partitions); partitions != 3 {
		panic(fmt.Sprintf("%d partitions", partitions))
	}
	must(tools.DeleteTopic("sarama-admin"))
	if err := tools.DeleteTopic("sarama-admin"); !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
		panic(fmt.Sprintf("deleted twice: %v", err))
	}
}

func main() {
	address = os.Args[1:2]
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == library {
			fmt.Println(dependency.Version)
		}
	}
	for _, check := range os.Args[2:] {
		switch check {
		case "produce":
			sent := produce("plain", config())
			expect(read("sarama-plain", count), sent)
		case "login":
			name := "login-" + os.Getenv("KAFKA_MECHANISM")
			sent := produce(name, config())
			expect(read("sarama-"+name, count), sent)
		case "codecs":
			for name, codec := range codecs {
				settings := config()
				settings.Producer.Compression = codec
				sent := produce(name, settings)
				expect(read("sarama-"+name, count), sent)
			}
		case "group":
			group()
		case "transactions":
			transactions()
		case "admin":
			admin()
		default:
			panic("unknown check " + check)
		}
	}
}
