"""Reading the text in a picture of a screen: consoles by the shapes of their fonts, the rest by tesseract.

`labd.ocr.reader.read(frame)` does it; `library.find_fonts` says with which fonts. Pure work on arrays, but for
tesseract, which the shim runs. Imported by the video worker and by benchmarks, never at the start of the program.
"""
