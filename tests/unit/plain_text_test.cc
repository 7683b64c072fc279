// Text that terminals, pictures or spreadsheets would interpret is escaped.
#include "sim/ir/plain_text.h"

#include <gtest/gtest.h>

#include "traces/drawings/svg_canvas.h"
#include "traces/files/csv_string.h"
#include "traces/json/json_string.h"

namespace bubblescope::tests {
namespace {

TEST(PlainText, ShowsControlCharactersAsEscapes) {
  EXPECT_EQ(escape_line("1f1b µs 北"), "1f1b µs 北");
  EXPECT_EQ(escape_line("a\x1b[2Jb\x7f\r\n\t"), "a\\x1b[2Jb\\x7f\\r\\n\\t");
  EXPECT_EQ(escape_line("\xc2\x9b"
                        "31m"),
            "\\u009b31m");
  EXPECT_EQ(escape_line("a\xe2\x80\xae"
                        "b\xef\xbb\xbf"),
            "a\\u202eb\\ufeff");
  EXPECT_EQ(escape_line(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(escape_line("a\u00a0b\u200bc\u3000d"), "a\\u00a0b\\u200bc\\u3000d");  // unlike spaces
  EXPECT_EQ(escape_lines("a\n\tb\r"), "a\n\tb\\r");
}

TEST(PlainText, ShowsBytesThatAreNoUtf8AsEscapes) {
  EXPECT_EQ(escape_line("\xff\xc0\xaf"), "\\xff\\xc0\\xaf");
  EXPECT_EQ(escape_line("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(escape_line("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  EXPECT_EQ(escape_line("\xe4\xb8"), "\\xe4\\xb8");                    // an incomplete character
}

TEST(PlainText, QuotesAtMostTwoHundredCharacters) {
  EXPECT_EQ(escape_message("file 'a b' is not a file; don't"), "file 'a b' is not a file; don't");
  const std::string word(1'000, 'x');
  EXPECT_EQ(escape_message("no '" + word + "' here"), "no '" + word.substr(0, 199) + "...' here");
  EXPECT_EQ(escape_message(word + ": no"), word.substr(0, 200) + "... no");
  std::string blanks;
  for (int at = 0; at < 500; ++at) blanks += "x ";
  EXPECT_LT(escape_message("no '" + blanks + "' here").size(), 230u);
}

TEST(PlainText, NeverCutsACharacter) {
  EXPECT_EQ(shorten("aµµ", 5), "aµµ");
  EXPECT_EQ(shorten("aµµ", 4), "aµ...");
  EXPECT_EQ(shorten("aµµ", 2), "a...");
}

TEST(PlainText, IsNoFormulaInACsv) {
  for (const char* formula : {"=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)"})
    EXPECT_EQ(traces::csv_field(formula), "\"'" + std::string(formula) + "\"");
  EXPECT_EQ(traces::csv_field("\t=1"), "\"'\\t=1\"");
  for (const char* plain : {"-1.5", "+3", "-1e9", "1f1b", "", "a=b"})
    EXPECT_EQ(traces::csv_field(plain), plain);
  EXPECT_EQ(traces::csv_string("=a\"b"), "\"'=a\"\"b\"");
  EXPECT_EQ(traces::csv_field("two\nlines"), "two\\nlines");
}

TEST(PlainText, IsInJsonAndSvgWithoutControlCharacters) {
  EXPECT_EQ(traces::json_string("a\x1b\x7f\xe2\x80\xaeµ"), "\"a\\u001b\\u007f\\u202eµ\"");
  EXPECT_EQ(traces::json_string("\xf3\xa0\x80\x81"), "\"\\udb40\\udc01\"");  // U+E0001
  EXPECT_EQ(traces::escape_xml("<\x1b>"), "&lt;\\x1b&gt;");
}

}  // namespace
}  // namespace bubblescope::tests
