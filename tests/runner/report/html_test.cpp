#include <gtest/gtest.h>

#include "report/page.hpp"

namespace headroom {
namespace {

TEST(Html, LeavesNoWayOutOfAnElementOrAttribute) {
  EXPECT_EQ(escape_html("<script>alert('x')</script>"), "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
  EXPECT_EQ(escape_html("\" onload=\"x & y"), "&quot; onload=&quot;x &amp; y");
}

TEST(Html, TakesTextThatIsNone) {
  EXPECT_EQ(escape_html(std::string("a\0b\x1b[31m", 8)), "a b [31m");
  EXPECT_EQ(escape_html("gr\xc3\xbc\xc3\x9f \xff"), "gr\xc3\xbc\xc3\x9f ?");
  EXPECT_EQ(escape_html("two\nlines\tand"), "two\nlines\tand");
  EXPECT_EQ(escape_html("ends\n"), "ends\n");
}

TEST(Html, SaysKeysAsWords) {
  EXPECT_EQ(words_of_key("queue_wait_seconds"), "queue wait");
  EXPECT_EQ(words_of_key("seconds"), "seconds");
  EXPECT_EQ(words_of_key("val/loss"), "val/loss");
}

}  // namespace
}  // namespace headroom
