#include "launch/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace siding::launch {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

const Gang kGang = {.rank = 0, .addresses = {"10.83.0.1", "10.83.0.2"}, .link = "siding0", .slots = 3};

TEST(SettingsTest, EachNodeHasTheJobsSlots) {
  EXPECT_EQ(HostFile(kGang), "10.83.0.1 slots=3\n10.83.0.2 slots=3\n");
}

TEST(SettingsTest, EverythingIsWithinTheJob) {
  const auto settings = MpirunSettings(kGang, "/opt/siding/bin/siding-mpirun", "/tmp/hosts", false);
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(*settings, Contains(Pair("OMPI_MCA_plm_rsh_agent", "/opt/siding/bin/siding-mpirun --relay")));
  EXPECT_THAT(*settings, Contains(Pair("OMPI_MCA_orte_default_hostfile", "/tmp/hosts")));
  EXPECT_THAT(*settings, Contains(Pair("OMPI_MCA_oob_tcp_if_include", "siding0")));
  EXPECT_THAT(*settings, Contains(Pair("OMPI_MCA_btl_tcp_if_include", "siding0")));
  EXPECT_THAT(*settings, Not(Contains(Key("OMPI_ALLOW_RUN_AS_ROOT"))));
}

TEST(SettingsTest, RootIsAllowedWhereItIsRoot) {
  EXPECT_THAT(*MpirunSettings(kGang, "/bin/x", "/tmp/hosts", true),
              Contains(Pair("OMPI_ALLOW_RUN_AS_ROOT", "1")));
}

TEST(SettingsTest, APathThatMpirunWouldTakeForTwoIsRefused) {
  for (const char* const path : {"/opt/my programs/siding-mpirun", "/opt/a:b/siding-mpirun"})
    EXPECT_EQ(MpirunSettings(kGang, path, "/tmp/hosts", false).status().code(),
              absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace siding::launch
