#include "controller/config.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  return std::string(ParseControllerConfig(text, "c.yaml").status().message());
}

TEST(Config, ReadsEveryField) {
  const auto config = ParseControllerConfig(
      "socket: /s\nstate_dir: /d\npolicy: /p\nheartbeat: 2s\nmetrics_port: 9100\nlog_level: debug\n",
      "c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->socket, "/s");
  EXPECT_EQ(config->state_dir, "/d");
  EXPECT_EQ(config->policy, "/p");
  EXPECT_EQ(config->heartbeat, std::chrono::seconds(2));
  EXPECT_EQ(config->metrics_port, 9100);
  EXPECT_EQ(config->log_level, "debug");
}
TEST(Config, ReadsHowLongEndedJobsAreKept) {
  const auto config = ParseControllerConfig("keep_ended: 30d\nkeep_ended_jobs: 5\n", "c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->retention.keep_ended, std::chrono::hours(30 * 24));
  EXPECT_EQ(config->retention.keep_ended_jobs, 5);
}
TEST(Config, StandsByWhenItIsTold) {
  const auto config = ParseControllerConfig("standby: true\nshared_state: true\n", "c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->standby);
  EXPECT_TRUE(config->shared_state);
  EXPECT_FALSE(ParseControllerConfig("", "c.yaml")->standby);
}
TEST(Config, ReadsWhoIsToldOfEvents) {
  const auto config = ParseControllerConfig(
      "events_to:\n  - {name: pager, url: https://hooks.example.org/x, secret: /k, ca: /c, kinds: [place, "
      "node-lost]}\n"
      "  - {name: log, log: journald}\n",
      "c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->events_to.size(), 2u);
  const ReceiverSettings& pager = config->events_to[0];
  EXPECT_EQ(pager.url, "https://hooks.example.org/x");
  EXPECT_EQ(pager.secret, "/k");
  EXPECT_EQ(pager.authority, "/c");
  EXPECT_THAT(pager.kinds, testing::ElementsAre("node-lost", "place"));
  EXPECT_EQ(config->events_to[1].log, EventLogKind::kJournald);
}
TEST(Config, WhoIsToldOfEventsHasANameOfItsOwn) {
  EXPECT_THAT(ErrorOf("events_to:\n  - {name: log, log: journald}\n  - {name: log, log: syslog}\n"),
              HasSubstr("events_to[2]: log: expected another name"));
  EXPECT_THAT(ErrorOf("events_to:\n  - {name: log}\n"), HasSubstr("log: expected either url, or log"));
}
TEST(Config, NoKindsOfEventsAreNotAllKinds) {
  EXPECT_THAT(ErrorOf("events_to:\n  - {name: log, log: journald, kinds: []}\n"),
              HasSubstr("expected one kind of events or more"));
}
TEST(Config, EventsHaveKindsThatThereAre) {
  EXPECT_THAT(
      ErrorOf("events_to:\n  - name: log\n    log: journald\n    kinds: [plaec]\n"),
      testing::AllOf(HasSubstr("c.yaml:4"),
                     HasSubstr("expected another kind of events than 'plaec', one of became-preemptible, ")));
}
TEST(Config, AHeartbeatHasALeastInterval) {
  EXPECT_THAT(ErrorOf("heartbeat: 1ms"), HasSubstr("heartbeat: expected 100ms or more"));
}
TEST(Config, MetricsAreForThisMachineUnlessAnAddressIsGiven) {
  EXPECT_EQ(ParseControllerConfig("", "c.yaml")->metrics_address, "127.0.0.1");
  EXPECT_EQ(ParseControllerConfig("metrics_address: 0.0.0.0", "c.yaml")->metrics_address, "0.0.0.0");
  EXPECT_EQ(ParseControllerConfig("metrics_address: '::'", "c.yaml")->metrics_address, "[::]");
  EXPECT_THAT(ErrorOf("metrics_address: localhost"), HasSubstr("metrics_address: expected an IP address"));
}
TEST(Config, ThePageIsServedNowhereByDefault) {
  EXPECT_EQ(ParseControllerConfig("", "c.yaml")->page, "");
  const auto config = ParseControllerConfig(
      "page: 127.0.0.1:7480\nlimits: {page_connections: 9, page_connections_per_host: 3}\n", "c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->page, "127.0.0.1:7480");
  EXPECT_EQ(config->limits.page_connections, 9);
  EXPECT_EQ(config->limits.page_connections_per_host, 3);
}
TEST(Config, OneAddressHasNoMoreOfThePagesConnectionsThanThereAre) {
  EXPECT_THAT(
      ErrorOf("limits: {page_connections: 9, page_connections_per_host: 10}"),
      HasSubstr("limits.page_connections_per_host: 10; expected no more than limits.page_connections (9)"));
  EXPECT_EQ(ErrorOf("limits: {page_connections: 9, page_connections_per_host: 9}"), "");
}
TEST(Config, PortsHaveARange) { EXPECT_THAT(ErrorOf("metrics_port: 70000"), HasSubstr("from 0 to 65535")); }

TEST(Config, ReadsWhatASiteWithSlurmSays) {
  const auto config = ParseControllerConfig(
      "slurm:\n  mode: steering\n  backend: tools\n  interval: 1s\n  suspend: false\n  ask_socket: /a\n",
      "c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->slurm.mode, SlurmMode::kSteering);
  EXPECT_EQ(config->slurm.backend, slurm::Backend::kTools);
  EXPECT_EQ(config->slurm.interval, std::chrono::seconds(1));
  EXPECT_FALSE(config->slurm.suspend);
  EXPECT_EQ(config->slurm.ask_socket, "/a");
}
TEST(Config, ASlurmModeIsOneOfTwo) {
  EXPECT_THAT(ErrorOf("slurm:\n  mode: both"), HasSubstr("expected steering or assisting"));
}

TEST(Config, ReadsWhatAClusterOfKubernetesSays) {
  const auto config = ParseControllerConfig(
      "kubernetes:\n  mode: evicting\n  kubeconfig: /k\n  namespace: ours\n  leave_alone: [a, b]\n",
      "c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->kubernetes.on);
  EXPECT_EQ(config->kubernetes.kubeconfig, "/k");
  EXPECT_EQ(config->kubernetes.space, "ours");
  EXPECT_EQ(config->kubernetes.leave_alone, (std::set<std::string>{"a", "b"}));
  EXPECT_FALSE(ParseControllerConfig("", "c.yaml")->kubernetes.on);
  EXPECT_TRUE(config->kubernetes.host_paths.read_only.empty());
  EXPECT_TRUE(config->kubernetes.host_paths.read_write.empty());
}
TEST(Config, ReadsWhereTheApiServerAsks) {
  const auto config = ParseControllerConfig(
      "kubernetes:\n  mode: evicting\n  webhook: {port: 9443, address: \"::\", certificate: /c, key: /k}\n",
      "c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->kubernetes.webhook.port, 9443);
  EXPECT_EQ(config->kubernetes.webhook.address, "::");
  EXPECT_EQ(config->kubernetes.webhook.certificate, "/c");
  EXPECT_EQ(config->kubernetes.webhook.key, "/k");
}
TEST(Config, AWebhookHasACertificate) {
  EXPECT_THAT(ErrorOf("kubernetes:\n  mode: evicting\n  webhook: {port: 9443, certificate: /c}"),
              HasSubstr("kubernetes.webhook: expected certificate and key"));
}
TEST(Config, ReadsWhichFoldersOfNodesAreTheSame) {
  const auto config = ParseControllerConfig(
      "kubernetes:\n  host_paths: {read_only: /software/, read_write: [/data, //home]}\n", "c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->kubernetes.host_paths.read_only, std::vector<std::string>{"/software"});
  EXPECT_EQ(config->kubernetes.host_paths.read_write, (std::vector<std::string>{"/data", "/home"}));
}
TEST(Config, AFolderOfNodesIsAPlainPathBelowTheRoot) {
  for (const char* path : {"/", "data", "/data/../etc"})
    EXPECT_THAT(ErrorOf(absl::StrCat("kubernetes:\n  host_paths: {read_only: [/a, ", path, "]}")),
                HasSubstr("kubernetes.host_paths.read_only: expected a"))
        << path;
}
TEST(Config, AModeOfKubernetesIsNamed) {
  EXPECT_THAT(ErrorOf("kubernetes:\n  mode: parking"), HasSubstr("kubernetes.mode: expected evicting"));
}
TEST(Config, AClusterHasOneQueue) {
  EXPECT_THAT(ErrorOf("slurm:\n  mode: steering\nkubernetes:\n  mode: evicting"),
              HasSubstr("kubernetes.mode: expected nothing beside slurm.mode: a cluster has one queue"));
}

TEST(Config, ReadsEveryLimit) {
  const auto config = ParseControllerConfig(
      "limits:\n  connections: 1\n  connections_per_user: 2\n  waiting_calls: 3\n"
      "  waiting_calls_per_user: 4\n  threads: 5\n  remote_connections: 6\n  connections_per_host: 7\n"
      "  arriving_calls: 4\n  arriving_calls_per_user: 2\n  calls_per_connection: 8\n"
      "  calls: 4\n  calls_per_user: 3\n  planning_calls_per_user: 9\n",
      "c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->limits.connections, 1);
  EXPECT_EQ(config->limits.connections_per_user, 2);
  EXPECT_EQ(config->limits.waiting_calls, 3);
  EXPECT_EQ(config->limits.waiting_calls_per_user, 4);
  EXPECT_EQ(config->limits.threads, 5);
  EXPECT_EQ(config->limits.remote_connections, 6);
  EXPECT_EQ(config->limits.connections_per_host, 7);
  EXPECT_EQ(config->limits.arriving_calls, 4);
  EXPECT_EQ(config->limits.arriving_calls_per_user, 2);
  EXPECT_EQ(config->limits.calls_per_connection, 8);
  EXPECT_EQ(config->limits.calls, 4);
  EXPECT_EQ(config->limits.calls_per_user, 3);
  EXPECT_EQ(config->limits.planning_calls_per_user, 9);
}
TEST(Config, ALimitIsAWholeNumberAboveNothing) {
  EXPECT_THAT(ErrorOf("limits:\n  connections: 0\n"), HasSubstr("c.yaml:2"));
}
TEST(Config, CallsThatWaitLeaveThreadsForOthers) {
  EXPECT_THAT(ErrorOf("limits:\n  threads: 512\n"),
              HasSubstr("limits.waiting_calls: 512; expected fewer than limits.threads (512)"));
  EXPECT_THAT(ErrorOf("limits:\n  arriving_calls: 1024\n"),
              HasSubstr("limits.arriving_calls: 1024; expected fewer than limits.threads (1024)"));
  EXPECT_THAT(ErrorOf("limits:\n  calls: 1024\n"),
              HasSubstr("limits.calls: 1024; expected fewer than limits.threads (1024)"));
}
TEST(Config, AnUnknownLimitIsAnError) {
  EXPECT_THAT(ErrorOf("limits:\n  conections: 5\n"), HasSubstr("conections"));
}

TEST(Config, ReadsTheWayInFromTheNetwork) {
  const auto config = ParseControllerConfig(
      "listen: 0.0.0.0:7433\ntls: {ca: /ca, certificate: /c, key: /k}\nidentity: munge\nmunge_socket: /m\n",
      "c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->listen, "0.0.0.0:7433");
  EXPECT_EQ(config->tls.ca, "/ca");
  EXPECT_EQ(config->tls.certificate, "/c");
  EXPECT_EQ(config->tls.key, "/k");
  EXPECT_EQ(config->identity, IdentityBy::kMunge);
  EXPECT_EQ(config->munge_socket, "/m");
}
TEST(Config, NothingListensOnTheNetworkByDefault) { EXPECT_EQ(ControllerConfig().listen, ""); }
TEST(Config, AnIdentityIsByOneOfTwoMeans) {
  EXPECT_THAT(ErrorOf("identity: password"), HasSubstr("c.yaml:1: identity: expected certificate or munge"));
}

const TlsFiles kAllFiles{"/ca", "/c", "/k"};

TEST(Listening, NeedsTls) {
  EXPECT_THAT(CheckListening({.listen = "0.0.0.0:7433"}).message(), HasSubstr("without TLS"));
}
TEST(Listening, NeedsEveryFileOfTls) {
  EXPECT_FALSE(CheckListening({.listen = "0.0.0.0:7433", .tls = {.ca = "/ca"}}).ok());
}
TEST(Listening, NeedsAPort) {
  EXPECT_THAT(CheckListening({.listen = "0.0.0.0", .tls = kAllFiles}).message(),
              HasSubstr("expected ADDRESS:PORT"));
}
TEST(Listening, IsGoodWithAddressAndFiles) {
  EXPECT_TRUE(CheckListening({.listen = "[::]:7433", .tls = kAllFiles}).ok());
}
TEST(Listening, TlsAloneIsAMistake) {
  EXPECT_THAT(CheckListening({.tls = kAllFiles}).message(), HasSubstr("listen is not"));
}

}  // namespace
}  // namespace siding
