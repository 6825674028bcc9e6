#include "scene.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace dual_arm_hdf5 {

namespace {

struct Colour {
  double red, green, blue;
};
constexpr Colour kTable{196.0, 180.0, 160.0}, kMark{40.0, 150.0, 70.0}, kBlock{205.0, 40.0, 40.0};
constexpr Colour kLeftArm{50.0, 80.0, 190.0}, kRightArm{120.0, 60.0, 140.0}, kFinger{25.0, 25.0, 30.0};

struct Pixel {
  double x = 0.0, y = 0.0;
};

// A view without perspective: what lies in the plane of the picture, to scale.
class View {
 public:
  View(const Scene& scene, uint64_t view, uint64_t height, uint64_t width, std::span<uint8_t> pixels)
      : height_(static_cast<double>(height)),
        width_(static_cast<double>(width)),
        rows_(height),
        columns_(width),
        pixels_(pixels),
        from_front_(view == 1) {
    const bool at_wrist = view >= 2;
    const Point& tip = view == 2 ? scene.left.tip : scene.right.tip;
    centre_ = at_wrist ? tip : Point{0.0, 0.3, 0.28};
    const double wide = at_wrist ? 0.3 : 1.2, high = at_wrist ? 0.3 : from_front_ ? 0.7 : 0.8;
    scale_ = std::min(width_ / wide, height_ / high);
  }

  void fill(const Colour& colour) {
    for (std::size_t i = 0; i < pixels_.size(); i += 3) blend(i, colour, 1.0);
  }

  // A line with round ends; both ends equal: a disc.
  void line(const Point& from, const Point& to, double metres, const Colour& colour) {
    const Pixel a = project(from), b = project(to);
    const double radius = std::max(0.6, metres * scale_), dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy;
    paint(std::min(a.x, b.x) - radius, std::max(a.x, b.x) + radius, std::min(a.y, b.y) - radius,
          std::max(a.y, b.y) + radius, colour, [&](double x, double y) {
            const double along = square > 0.0 ? std::clamp(((x - a.x) * dx + (y - a.y) * dy) / square, 0.0, 1.0) : 0.0;
            return radius - std::hypot(x - a.x - along * dx, y - a.y - along * dy);
          });
  }

  void square(const Point& centre, double metres, const Colour& colour) {
    const Pixel at = project(centre);
    const double half = std::max(0.6, metres * scale_);
    paint(at.x - half, at.x + half, at.y - half, at.y + half, colour,
          [&](double x, double y) { return half - std::max(std::abs(x - at.x), std::abs(y - at.y)); });
  }

 private:
  Pixel project(const Point& point) const {
    const double up = from_front_ ? point.z - centre_.z : point.y - centre_.y;
    return {width_ / 2.0 + scale_ * (point.x - centre_.x), height_ / 2.0 - scale_ * up};
  }

  void blend(std::size_t at, const Colour& colour, double share) {
    const std::array parts = {colour.red, colour.green, colour.blue};
    for (std::size_t c = 0; c < parts.size(); ++c) {
      const double mixed = static_cast<double>(pixels_[at + c]) * (1.0 - share) + parts[c] * share;
      pixels_[at + c] = static_cast<uint8_t>(std::lround(mixed));
    }
  }

  // `inside(x, y)`: pixels from the edge, negative outside.
  template <class Inside>
  void paint(double left, double right, double top, double bottom, const Colour& colour, Inside&& inside) {
    const auto within = [](double value, uint64_t most) {
      return static_cast<uint64_t>(std::clamp(value, 0.0, static_cast<double>(most)));
    };
    for (uint64_t row = within(top - 1.0, rows_); row < within(bottom + 2.0, rows_); ++row) {
      for (uint64_t column = within(left - 1.0, columns_); column < within(right + 2.0, columns_); ++column) {
        const double depth = inside(static_cast<double>(column) + 0.5, static_cast<double>(row) + 0.5);
        const double share = std::clamp(depth + 0.5, 0.0, 1.0);
        if (share > 0.0) blend(3 * (row * columns_ + column), colour, share);
      }
    }
  }

  double height_, width_;
  uint64_t rows_, columns_;
  std::span<uint8_t> pixels_;
  bool from_front_;
  Point centre_;
  double scale_ = 1.0;
};

void draw_arm(View& view, const ArmPoints& arm, double gripper, const Colour& colour) {
  view.line(arm.base, arm.elbow, 0.025, colour);
  view.line(arm.elbow, arm.wrist, 0.018, colour);
  const double apart = 0.01 + 0.03 * std::clamp(gripper, 0.0, 1.0);
  for (const double side : {-apart, apart}) {
    const Point finger{arm.tip.x + side, arm.tip.y, arm.tip.z};
    view.line({finger.x, finger.y, arm.wrist.z}, finger, 0.008, kFinger);
  }
}

}  // namespace

void draw(const Scene& scene, uint64_t view, uint64_t height, uint64_t width, std::span<uint8_t> pixels) {
  View picture(scene, view, height, width, pixels);
  picture.fill(kTable);
  picture.line(scene.mark, scene.mark, 0.045, kMark);
  picture.square(scene.block, 0.03, kBlock);
  draw_arm(picture, scene.left, scene.left_gripper, kLeftArm);
  draw_arm(picture, scene.right, scene.right_gripper, kRightArm);
}

}  // namespace dual_arm_hdf5
