#include "agent/network/packet_tables.h"

#include "gtest/gtest.h"

namespace siding {
namespace {

TEST(PacketTables, ThisKernelMakesThemForAnOwner) {
  const absl::Status status = TryPacketTable();
  if (absl::IsUnavailable(status)) GTEST_SKIP() << status;
  EXPECT_TRUE(status.ok()) << status;
}

// As one before 5.12 does not know that of the owner.
TEST(PacketTables, AFlagThatTheKernelDoesNotKnowIsFoundOut) {
  const absl::Status status = TryPacketTable(1U << 30);
  if (absl::IsUnavailable(status)) GTEST_SKIP() << status;
  EXPECT_FALSE(status.ok());
}

}  // namespace
}  // namespace siding
