#include "agent/network/address_towards.h"

#include "gtest/gtest.h"

namespace siding {
namespace {

TEST(AddressTowards, AControllerOnThisMachineIsTheLoopbacks) {
  EXPECT_EQ(AddressTowards({"127.0.0.1:7433"}).value(), "127.0.0.1");
  EXPECT_EQ(AddressTowards({"/run/siding/siding.sock"}).value(), "127.0.0.1");
  EXPECT_EQ(AddressTowards({}).value(), "127.0.0.1");
}

TEST(AddressTowards, ANameThatNobodyKnowsIsPassedOver) {
  EXPECT_EQ(AddressTowards({"nobody.invalid:7433", "127.0.0.2:7433"}).value(), "127.0.0.1");
  EXPECT_TRUE(absl::IsUnavailable(AddressTowards({"nobody.invalid:7433"}).status()));
}

}  // namespace
}  // namespace siding
