#include "launch/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <utility>

namespace siding::launch {
namespace {

using ::testing::HasSubstr;

TEST(MessageTest, IsTheSameAfterwards) {
  for (const Message& message : {Message{Kind::kFollow, ""}, Message{Kind::kRun, std::string("a\0b\n", 4)},
                                 Message{Kind::kRun, std::string(70000, 'x')}}) {
    std::string bytes = *Encode(message) + "SML";
    EXPECT_EQ(**Take(bytes), message);
    EXPECT_EQ(bytes, "SML");
  }
}

TEST(MessageTest, ComesInPieces) {
  const std::string whole = *Encode({Kind::kExit, "137"});
  std::string bytes;
  for (size_t i = 0; i + 1 < whole.size(); ++i) {
    bytes.push_back(whole[i]);
    const auto taken = Take(bytes);
    ASSERT_TRUE(taken.ok());
    EXPECT_FALSE(taken->has_value());
  }
  bytes.push_back(whole.back());
  EXPECT_EQ((*Take(bytes))->text, "137");
}

TEST(MessageTest, GarbageIsNone) {
  for (std::string bytes : {std::string("GET / HTTP/1.1"), std::string("SML2F\0\0\0\0", 9), std::string("x"),
                            std::string("SML1?\0\0\0\0", 9), std::string("SML1R\xff\xff\xff\xff", 9)}) {
    EXPECT_EQ(Take(bytes).status().code(), absl::StatusCode::kInvalidArgument) << bytes;
  }
}

TEST(MessageTest, ATextIsNoLongerThanIsRead) {
  EXPECT_TRUE(Encode({Kind::kRun, std::string(kLongestText, 'x')}).ok());
  EXPECT_EQ(Encode({Kind::kRun, std::string(kLongestText + 1, 'x')}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(MessageTest, ANumberIsAnExitCodeOrASignal) {
  EXPECT_EQ(*NumberIn({Kind::kExit, "255"}), 255);
  for (const char* const text : {"", "256", "-1", "x"})
    EXPECT_FALSE(NumberIn({Kind::kExit, text}).ok()) << text;
}

class PeerTest : public ::testing::Test {
 protected:
  PeerTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    near_.emplace(UniqueFd(ends[0]));
    far_.emplace(UniqueFd(ends[1]));
  }

  std::optional<Peer> near_, far_;
};

TEST_F(PeerTest, HasNothingUntilSomethingComes) { EXPECT_FALSE((*near_->Receive()).has_value()); }

TEST_F(PeerTest, HearsOneMessageAfterTheOtherAndThenTheEnd) {
  ASSERT_TRUE(far_->Send({Kind::kFollow, ""}).ok());
  ASSERT_TRUE(far_->Send({Kind::kEnd, ""}).ok());
  far_.reset();
  EXPECT_EQ((*near_->Receive())->kind, Kind::kFollow);
  EXPECT_EQ((*near_->Receive())->kind, Kind::kEnd);
  EXPECT_EQ(near_->Receive().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(PeerTest, SaysThatItHearsGarbage) {
  ASSERT_EQ(send(far_->fd(), "SSH-2.0", 7, 0), 7);
  const auto message = near_->Receive();
  EXPECT_EQ(message.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(message.status().message()), HasSubstr("expected a message of siding-mpirun's"));
}

}  // namespace
}  // namespace siding::launch
