// What the stream behind stderr can show.
#pragma once

namespace headroom {

struct Terminal {
  int file = 2;
  bool control = false;  // lines can be redrawn: a terminal, and TERM names one that obeys
  bool utf8 = false;     // the locale says so
  bool color = false;    // as control, unless NO_COLOR is set

  int columns() const;  // now; 80 where nobody knows
};

// Looks at `file` and at TERM, NO_COLOR, LC_ALL, LC_CTYPE, LANG.
Terminal terminal_of(int file);

}  // namespace headroom
