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
TEST(Config, AHeartbeatHasALeastInterval) {
  EXPECT_THAT(ErrorOf("heartbeat: 1ms"), HasSubstr("heartbeat: expected 100ms or more"));
}
TEST(Config, PortsHaveARange) { EXPECT_THAT(ErrorOf("metrics_port: 70000"), HasSubstr("from 0 to 65535")); }

}  // namespace
}  // namespace siding
