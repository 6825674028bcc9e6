#include "ranks/sockets.hpp"

#include <gtest/gtest.h>
#include <system_error>

namespace headroom {
namespace {

TEST(WaitForName, ReturnsAtOnceWhereThereIsAnAddress) {
  wait_for_name("localhost", std::chrono::seconds(60));
  wait_for_name("127.0.0.1", std::chrono::seconds(60));
}

TEST(WaitForName, SaysWhatToSetWhereThereIsNone) {
  try {
    wait_for_name("no-such-host.invalid", std::chrono::milliseconds(50));
    FAIL() << "it has an address";
  } catch (const std::system_error& problem) {
    const std::string sentence = problem.what();
    EXPECT_NE(sentence.find("the name 'no-such-host.invalid' has no address"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("set MASTER_ADDR"), std::string::npos) << sentence;
  }
}

}  // namespace
}  // namespace headroom
