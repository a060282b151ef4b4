// Numbers as text: a true minus sign, and a fixed number of digits.

// fixed(-0.1234, 2) is "−0.12".
export function fixed(value, digits = 2) {
  if (value === null || value === undefined || !Number.isFinite(value))
    return value < 0 ? "−∞" : "–";
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : text.replace("-", "−");
}

// signed(0.5, 2) is "+0.50".
export function signed(value, digits = 2) {
  const text = fixed(value, digits);
  return value > 0 && Number(text) !== 0 ? `+${text}` : text;
}

// A probability as per cent: 0.0123 is "1.2 %", and 0.0004 is no 0.
export function percent(value) {
  return value > 0 && value < 0.0005 ? "< 0.1 %" : `${fixed(100 * value, 1)} %`;
}

// count(1234567) is "1,234,567".
export function count(value) {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");
}

// The class for letters with a contrast of 4.5 on this share of the hue, in both themes.
export function tone(share) {
  if (share < 0.45) return "";
  return share < 0.54 ? "half" : share < 0.76 ? "mid" : "dark";
}

// shape([11, 128]) is "11 × 128".
export function shape(sizes) {
  return sizes.join(" × ");
}
